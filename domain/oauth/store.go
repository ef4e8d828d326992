package oauth

import (
	"context"
	"time"
)

// Store keeps codes and grants, apart from the site's content. Every state change is one closure in one transaction, so single use holds in
// every implementation; features/storespec is its contract. A closure may run more than once and changes only its argument. When it returns an
// error, the store returns that error and keeps nothing.
//
// bootstrap finds optional capabilities by type assertion: AuthorizationLister, ClientLister, ClientDocumentStore, SecretKeeper, SecretVerifier, EndWatcher, WindowCounter
// and trace.Log. A host that wraps its store has to implement those that it needs, because the wrapper hides them.
type Store interface {
	// AddCode keeps a new code. When there is one with the same id, supersede decides inside the transaction: nil replaces the earlier code, which
	// may have the same digest. ErrDuplicate if a code with another id has the digest.
	AddCode(ctx context.Context, code *AuthorizationCode, supersede func(earlier *AuthorizationCode) error) error

	// Code returns the code with the digest. ErrNotFound.
	Code(ctx context.Context, code Digest) (*AuthorizationCode, error)

	// RedeemCode applies redeem to the newest state of the code, and keeps the changed code and the new grant in one transaction. ErrNotFound, and
	// ErrDuplicate if a secret of the grant is taken.
	RedeemCode(ctx context.Context, code Digest, redeem func(*AuthorizationCode) (*AccessGrant, error)) error

	// Grant returns the grant that the access or refresh token belongs to, with that token as its only secret. ErrNotFound.
	Grant(ctx context.Context, token Digest) (*AccessGrant, error)

	// UpdateGrant applies change to the newest state of the grant, and keeps the secrets that change adds. A change that empties the HostBox
	// empties the HostWrap of every secret of the grant, because there is nothing left to open (H6). ErrNotFound, ErrDuplicate.
	UpdateGrant(ctx context.Context, token Digest, change func(*AccessGrant) error) error

	// AuthorizationsOf returns the issued codes and the active grants with this HostPrint, each oldest first and the grants without secrets.
	AuthorizationsOf(ctx context.Context, host Fingerprint) (Authorizations, error)

	// UpdateAuthorizationsOf applies change to the newest state of all of them in one transaction, as UpdateGrant does. A store that locks
	// rows locks the codes before the grants, so that the change sees the grant of a simultaneous redemption.
	UpdateAuthorizationsOf(ctx context.Context, host Fingerprint, change func(Authorizations) error) error

	// UseOnce records that an assertion was used, until forgetAfter. Of several calls with one assertion exactly one succeeds. ErrDuplicate.
	UseOnce(ctx context.Context, assertion Digest, forgetAfter time.Time) error

	// DeleteExpired deletes codes, grants, secrets and used assertions whose ForgetAfter has passed, a grant with all its secrets, and returns the
	// number of deleted rows. A secret without a ForgetAfter is deleted with its grant, never earlier. It also clears the SuccessorBox of grants whose
	// GraceEnd has come (J9).
	DeleteExpired(ctx context.Context, now time.Time) (int, error)
}

// AuthorizationLister is a Store that lists all codes and grants for an operator.
type AuthorizationLister interface {
	// Authorizations returns every code and grant in the store, also those that have ended, each oldest first and the grants without secrets.
	Authorizations(ctx context.Context) (Authorizations, error)
}

// ClientLister is a Store that lists the clients with active grants, so that their documents stay in the cache from the start (C54).
type ClientLister interface {
	// Clients returns at most limit clients, those with the most active grants first.
	Clients(ctx context.Context, now time.Time, limit int) ([]ClientID, error)
}

// SecretVerifier is a Store that keeps the fingerprint of its server secret, so that a process with another secret, which could not open the data,
// does not start.
type SecretVerifier interface {
	// VerifySecret returns ErrOtherSecret when the stored fingerprint is not among those of this process, the newest first
	// (KeyRing.SecretFingerprints). Otherwise it stores the newest of them.
	VerifySecret(ctx context.Context, prints []Fingerprint) error
}

// Ended lists grants that have ended and tokens that were revoked.
type Ended struct {
	Grants []string // ids
	Tokens []Digest // revoked access tokens of active grants
}

// EndWatcher is a Store that lists the grants and tokens that recently ended in any process, so that every process closes their streams within a
// second (G16). With another store a process detects the end at the next keep-alive comment of a stream.
type EndWatcher interface {
	// EndedSince returns the grants that ended at that time or after it, and the tokens that were revoked.
	EndedSince(ctx context.Context, since time.Time) (Ended, error)
}
