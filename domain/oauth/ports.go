package oauth

import (
	"context"
	"time"
)

// BearerVerifier verifies a host token at the site that issued it. ErrUnknownBearer, wrapped or not, means that the token is invalid. Any
// other error is an outage, during which nothing is issued and nothing ends (B9, D25).
type BearerVerifier interface {
	VerifyBearer(ctx context.Context, token string) (Principal, error)
}

// VerifierUnavailable is the cause of an outage of a BearerVerifier, as text for the log and the trace. It must not contain the token or a part of the
// site's answer. Of any other error only the type is logged, because its text may contain the token (B15).
type VerifierUnavailable string

func (c VerifierUnavailable) Error() string { return string(c) }

// ClientDirectory finds the metadata document of a client. A directory with a cache fetches a document again, at most once a minute, when it
// does not list redirectURI, unless that is empty (C50). It returns the refusals of
// NewClientMetadata, ErrMetadataUnreachable (C41), ErrMetadataNoDocument (C42), ErrMetadataSlow (C53), ErrMetadataMalformed (C22) or
// ErrMetadataBudget (C45), wrapped by RetryableAfter when the wait is known.
type ClientDirectory interface {
	Client(ctx context.Context, id ClientID, redirectURI string) (*ClientMetadata, error)
}

// ClientKeeper is a ClientDirectory that keeps the documents of clients in use.
type ClientKeeper interface {
	ClientDirectory
	// Keep marks a client as in use: documents of other clients do not evict its document and its keys (C54), and their fetches do not
	// take its places (C55). by is the host token that approved it, so that a token with many clients evicts documents of its own clients
	// only. It is zero for a client that had living grants at the start.
	Keep(id ClientID, by Fingerprint)
	// Connected returns the document of a client that has a grant. When it cannot be fetched, a cached document serves until an hour after
	// it has expired (C56).
	Connected(ctx context.Context, id ClientID) (*ClientMetadata, error)
}

// KeyDirectory finds the keys at a client's jwks_uri (C20, D33). It fetches a set that lacks the wanted key id again, at most once a minute. Its errors are those of ClientDirectory.
type KeyDirectory interface {
	KeySet(ctx context.Context, at ClientID, wanted string) (KeySet, error)
}

// AssertionReader verifies the signature of an assertion with the key that keyOf finds by the key id. It returns the errors of keyOf, and
// ErrBadAssertion for a malformed JWT, an algorithm that is not in AssertionAlgorithms, or a wrong signature.
type AssertionReader interface {
	ReadAssertion(assertion string, keyOf func(id string) (Key, error)) (ClientAssertion, error)
}

// FailureLimit counts the unknown codes and refresh tokens of an address (D31). Each process counts for itself, because a secret of 256
// bits cannot be guessed. Failed counts one, and returns how long the address has to wait when it has sent too many.
type FailureLimit interface {
	Failed(address string, now time.Time) (wait time.Duration)
}
