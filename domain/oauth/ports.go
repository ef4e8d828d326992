package oauth

import (
	"context"
	"time"
)

// BearerVerifier asks the site about one of its own tokens. ErrUnknownBearer, wrapped or not, means that the token does not
// hold; any other error means that the site cannot tell just now, which never issues and never ends anything (B9, D25).
type BearerVerifier interface {
	VerifyBearer(ctx context.Context, token string) (Principal, error)
}

// CannotTell is why a BearerVerifier cannot tell just now, in words of its own that are fit for the log and the trace: nothing that
// was pasted, and nothing that the site said. Of other errors only the type is told, because their text may hold the token (B15).
type CannotTell string

func (c CannotTell) Error() string { return string(c) }

// ClientDirectory finds what a client publishes under its client_id. A directory that remembers documents fetches one again, at most
// once a minute, when it does not list the wanted redirect URI (C50); none is wanted when that is empty. It returns the refusals of
// NewClientMetadata, ErrMetadataUnreachable (C41), ErrMetadataNoDocument (C42), ErrMetadataSlow (C53), ErrMetadataMalformed (C22) or
// ErrMetadataBudget (C45), wrapped by RetryableAfter when the wait is known.
type ClientDirectory interface {
	Client(ctx context.Context, id ClientID, redirectURI string) (*ClientMetadata, error)
}

// ClientKeeper is a ClientDirectory that keeps the documents of clients in use.
type ClientKeeper interface {
	ClientDirectory
	// Keep marks a client as in use: documents of other clients do not evict its document and its keys (C54), and their fetches do not
	// take its places (C55). by is the host token that approved it, so that a token with many clients pushes out its own; it is zero for
	// a client that had living grants at the start.
	Keep(id ClientID, by Fingerprint)
	// Connected returns the document of a client that has a grant. One that has expired less than an hour ago serves when it cannot be
	// renewed (C56).
	Connected(ctx context.Context, id ClientID) (*ClientMetadata, error)
}

// KeyDirectory finds the keys that a client publishes at a URL of their own (C20, D33). A set that lacks the wanted id is fetched
// again, at most once a minute. Its errors are those of ClientDirectory.
type KeyDirectory interface {
	KeySet(ctx context.Context, at ClientID, wanted string) (KeySet, error)
}

// AssertionReader opens a signed assertion with the key of the id that it names, which keyOf finds. An error of keyOf is passed
// on; ErrBadAssertion is what is no JWT, is signed with none of AssertionAlgorithms, or does not fit the key.
type AssertionReader interface {
	ReadAssertion(assertion string, keyOf func(id string) (Key, error)) (ClientAssertion, error)
}

// FailureLimit counts the unknown codes and refresh tokens of an address (D31). Each process counts for itself, because a secret of 256
// bits cannot be guessed. Failed counts one, and returns how long the address has to wait when it has sent too many.
type FailureLimit interface {
	Failed(address string, now time.Time) (wait time.Duration)
}
