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
	// transaction: nil replaces it, an error leaves everything as it was and is returned. ErrDuplicate if a secret is taken.
	AddGrant(ctx context.Context, grant *AccessGrant, supersede func(earlier *AccessGrant) error) error

	// Grant returns the grant that the secret belongs to. ErrNotFound.
	Grant(ctx context.Context, secret Digest) (*AccessGrant, error)

	// UpdateGrant applies change to the newest state, all or nothing: an error from change is returned and nothing is kept.
	// change may run more than once and touches only its argument. A change that takes the HostBox away takes the HostWrap of every
	// secret of the grant with it, because there is nothing left to open (H6). ErrNotFound, ErrDuplicate.
	UpdateGrant(ctx context.Context, secret Digest, change func(*AccessGrant) error) error

	// GrantsOf returns the grants made with one host token, oldest first, without their secrets.
	GrantsOf(ctx context.Context, host Fingerprint) ([]*AccessGrant, error)

	// UpdateGrantsOf applies change to each of them, as UpdateGrant does, in one transaction.
	UpdateGrantsOf(ctx context.Context, host Fingerprint, change func(*AccessGrant) error) error

	// UseOnce notes that an assertion was used, until it may be forgotten: of all who note it exactly one succeeds. ErrDuplicate.
	UseOnce(ctx context.Context, assertion Digest, forgetAfter time.Time) error

	// DeleteExpired forgets secrets, grants and used assertions whose ForgetAfter has come and returns how many rows went. It also
	// empties the SuccessorBox of grants whose GraceEnd has come (J9).
	DeleteExpired(ctx context.Context, now time.Time) (int, error)
}

// SecretKeeper is a Store that keeps the server secret beside itself; it saves the host from configuring one (J2).
type SecretKeeper interface {
	// Secret returns the same MinSecretLength bytes or more in every process that uses the store.
	Secret() ([]byte, error)
}
