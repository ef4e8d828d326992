package oauth

import (
	"context"
	"iter"
	"time"
)

// Store keeps codes and grants, apart from the site's content. Every state change is a closure over
// the newest state, which the store keeps all or nothing, so that single use holds in every
// implementation; features/storespec is its contract. The store may run a closure again after
// another process has changed the row, so a closure changes only its argument. When it returns an
// error, the store returns that error and keeps nothing.
//
// bootstrap finds optional capabilities by type assertion: AuthorizationLister,
// ClientDocumentStore, SecretKeeper, SecretVerifier, EndWatcher, SharedStore and connection.Log.
// A host that wraps its store has to implement those that it needs, because the wrapper hides them.
type Store interface {
	// AddCode keeps a new code. When there is one with the same id, supersede decides: nil
	// replaces the earlier code.
	AddCode(ctx context.Context, code *AuthorizationCode, supersede func(earlier *AuthorizationCode) error) error

	// Code returns the code with the id. ErrNotFound.
	Code(ctx context.Context, id string) (*AuthorizationCode, error)

	// RedeemCode applies redeem to the code, and keeps the changed code and the new grant, which
	// has the same id, together. known is the code as the caller has read it: a store that compares
	// versions may begin with a copy of it, and reads the newest when that is refused or overtaken.
	// ErrNotFound.
	RedeemCode(ctx context.Context, known *AuthorizationCode,
		redeem func(*AuthorizationCode) (*AccessGrant, error)) error

	// Grant returns the grant with the id. ErrNotFound.
	Grant(ctx context.Context, id string) (*AccessGrant, error)

	// UpdateGrant applies change to the grant, of which known is as for RedeemCode. It keeps all
	// changes but those of its last use. ErrNotFound.
	UpdateGrant(ctx context.Context, known *AccessGrant, change func(*AccessGrant) error) error

	// RecordUse keeps the last uses of grants, by id, for each the later of what it has and what it
	// gets. It ignores unknown ids, and undoes no change of UpdateGrant.
	RecordUse(ctx context.Context, uses map[string]Use) error

	// AuthorizationsOf returns the issued codes and the active grants with this
	// HostPrint, each oldest first.
	AuthorizationsOf(ctx context.Context, host Fingerprint) (Authorizations, error)

	// UpdateAuthorizationsOf applies change to all of them, and keeps all changes together. The
	// change also sees the grant of a redemption that ended before it.
	UpdateAuthorizationsOf(ctx context.Context, host Fingerprint, change func(Authorizations) error) error

	// UseOnce records that an assertion was used, until forgetAfter. Of several calls with one
	// assertion exactly one succeeds. ErrDuplicate.
	UseOnce(ctx context.Context, assertion Digest, forgetAfter time.Time) error

	// DeleteExpired deletes codes, grants and used assertions whose ForgetAfter is at or before
	// now, and returns their number.
	DeleteExpired(ctx context.Context, now time.Time) (int, error)
}

// AuthorizationLister is a Store that lists its codes and grants for an operator.
type AuthorizationLister interface {
	// Authorizations iterates over the issued codes and all grants, also those that have ended, the
	// oldest first. It lists a code that is redeemed meanwhile once, and does not keep all of them
	// in memory. An error ends the iteration.
	Authorizations(ctx context.Context) iter.Seq2[Authorization, error]
}

// SharedStore is a Store that reports whether replicas on other machines may use it too.
type SharedStore interface{ SharedByReplicas() bool }

// SecretVerifier is a Store that keeps the fingerprint of its server secret, so that a process with
// another secret, which could not open the data, does not start.
type SecretVerifier interface {
	// VerifySecret returns ErrOtherSecret when the stored fingerprint is not among those
	// of this process, the newest first (KeyRing.SecretFingerprints). Otherwise it
	// stores the newest of them.
	VerifySecret(ctx context.Context, prints []Fingerprint) error
}

// Ended lists grants that have ended and tokens that were revoked.
type Ended struct {
	Grants map[string]EndedGrant // by id
	Tokens []Digest              // of revoked access tokens of active grants
}

// EndedGrant is what other processes need to know of the end of a grant.
type EndedGrant struct {
	Reason    EndReason
	HostPrint Fingerprint
}

// EndWatcher is a Store that lists the grants and tokens that recently ended in any process, so
// that every process closes their streams within a second. With another store a process detects the
// end at the next keep-alive comment of a stream.
type EndWatcher interface {
	// EndedSince returns the grants that ended at that time or after it, and the tokens that were
	// revoked.
	EndedSince(ctx context.Context, since time.Time) (Ended, error)
}
