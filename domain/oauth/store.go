package oauth

import (
	"context"
	"time"
)

// Store keeps grants, apart from the site's content. Every state change is one atomic closure, so single use holds in every
// implementation; features/storespec holds them to it. A grant is found by the digest of any secret that belongs to it and
// comes with that secret only; the secrets that a closure added are kept beside the others.
type Store interface {
	// AddGrant keeps a new grant. When one with the same id stands already, supersede decides about it, inside the same
	// transaction: nil replaces it, an error leaves everything as it was and is returned. The new grant may have the code of the one that it
	// replaces. ErrDuplicate if a secret of another grant is taken.
	AddGrant(ctx context.Context, grant *AccessGrant, supersede func(earlier *AccessGrant) error) error

	// Grant returns the grant that the secret belongs to. ErrNotFound.
	Grant(ctx context.Context, secret Digest) (*AccessGrant, error)

	// UpdateGrant applies change to the newest state, all or nothing: an error from change is returned and nothing is kept.
	// change may run more than once and touches only its argument. A change that takes the HostBox away takes the HostWrap of every
	// secret of the grant with it, because there is nothing left to open (H6). ErrNotFound, ErrDuplicate.
	UpdateGrant(ctx context.Context, secret Digest, change func(*AccessGrant) error) error

	// GrantsOf returns the grants with this HostPrint, oldest first, without their secrets. A grant that has ended has no HostPrint.
	GrantsOf(ctx context.Context, host Fingerprint) ([]*AccessGrant, error)

	// UpdateGrantsOf applies change to each of them, as UpdateGrant does, in one transaction.
	UpdateGrantsOf(ctx context.Context, host Fingerprint, change func(*AccessGrant) error) error

	// UseOnce notes that an assertion was used, until it may be forgotten: of all who note it exactly one succeeds. ErrDuplicate.
	UseOnce(ctx context.Context, assertion Digest, forgetAfter time.Time) error

	// DeleteExpired forgets secrets, grants and used assertions whose ForgetAfter has come, with a grant all its secrets, and returns how many
	// rows went. A secret without a ForgetAfter goes with its grant and never before. It also empties the SuccessorBox of grants whose
	// GraceEnd has come (J9).
	DeleteExpired(ctx context.Context, now time.Time) (int, error)
}

// GrantLister is a Store that an operator can look through.
type GrantLister interface {
	// Grants returns every grant that is kept, also those that have ended, oldest first and without their secrets.
	Grants(ctx context.Context) ([]*AccessGrant, error)
}

// ClientLister is a Store that lists the clients with living grants, so that their documents are kept from the start (C54).
type ClientLister interface {
	// Clients returns at most limit clients, those with most living grants first.
	Clients(ctx context.Context, now time.Time, limit int) ([]ClientID, error)
}

// SecretWitness is a Store that several machines share. It remembers which server secret they seal with, so that one with another
// secret does not start: it could open nothing that the others have made.
type SecretWitness interface {
	// Agree takes the prints of the secrets that this machine keeps, the newest first (KeyRing.SecretFingerprints). It returns ErrOtherSecret when
	// the newest that the store knows is not among them, and remembers this machine's newest otherwise.
	Agree(ctx context.Context, prints []Fingerprint) error
}

// Ended is what opens nothing any more.
type Ended struct {
	Grants []string // whole ones, by id
	Tokens []Digest // single ones that were revoked
}

// EndWatcher is a Store that can say what has ended of late, whichever process ended it, so that every process that uses the store
// closes what it holds open for it within a second (G16). With another store a process notices at the next beat of a stream.
type EndWatcher interface {
	// EndedSince returns the grants that ended at that time or after it, and the tokens that were revoked.
	EndedSince(ctx context.Context, since time.Time) (Ended, error)
}
