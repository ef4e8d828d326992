package oauth

import (
	"context"
	"time"
)

// BearerVerifier verifies a host token at the site that issued it. An error that wraps
// ErrUnknownBearer means that the token is invalid. Any other error is an outage, during which no
// token is issued and no grant ends. A VerifierUnavailable is the error to return for "the site
// cannot check tokens now, because ...".
//
// The text of any other error is logged at level error, with the token and every secret field
// replaced: as it is, percent-encoded, in base64 and in hexadecimal. Of a token of less than eight
// bytes, only the type of the error is logged. A panic is an outage too and is logged with its type
// and stack, without its value. VerifyBearer has five seconds; ctx ends then.
type BearerVerifier interface {
	VerifyBearer(ctx context.Context, token string) (Principal, error)
}

// FieldsVerifier is a BearerVerifier that verifies all fields of a credential, by their names.
type FieldsVerifier interface {
	BearerVerifier
	VerifyFields(ctx context.Context, values map[string]string) (Principal, error)
}

// VerifierUnavailable is an error of a BearerVerifier whose text is logged as it is and shown in
// the trace. It must not contain the token or a part of the site's response. The texts of errors
// that wrap it are left out. Of any other error the trace has only the type.
type VerifierUnavailable string

func (c VerifierUnavailable) Error() string { return string(c) }

// UnknownBearer is ErrUnknownBearer with a reason for the operator, which is shown in the trace. It
// must not contain the token or a part of the site's response.
type UnknownBearer string

func (u UnknownBearer) Error() string { return string(u) }

// Unwrap returns ErrUnknownBearer.
func (UnknownBearer) Unwrap() error { return ErrUnknownBearer }

// VerifierMisconfigured is VerifierUnavailable because of a mistake of the operator, so that people
// are not told to try again.
type VerifierMisconfigured string

func (c VerifierMisconfigured) Error() string { return string(c) }

// Unwrap returns the same reason as VerifierUnavailable.
func (c VerifierMisconfigured) Unwrap() error { return VerifierUnavailable(c) }

// ClientDirectory finds the metadata document of a client. If a cached document does not list
// redirectURI, a directory fetches it again, at most once a minute; an empty redirectURI never
// causes that. The errors are the refusals of NewClientMetadata, and ErrMetadataUnreachable,
// ErrMetadataNoDocument, ErrMetadataMalformed and ErrMetadataBudget, which is wrapped by
// RetryableAfter when the wait is known.
type ClientDirectory interface {
	Client(ctx context.Context, id ClientID, redirectURI string) (*ClientMetadata, error)
}

// ClientKeeper is a ClientDirectory that stores the documents of approved clients.
type ClientKeeper interface {
	ClientDirectory
	// Keep stores the document of a client that a person has just approved.
	Keep(ctx context.Context, id ClientID)
	// Connected returns the document of a client that has a grant. If fetching fails, it returns a
	// cached document for up to an hour after its expiry.
	Connected(ctx context.Context, id ClientID) (*ClientMetadata, error)
}

// KeyDirectory finds the keys at a client's jwks_uri. If a cached set lacks the wanted key id, it
// fetches the set again, at most once a minute. Its errors are those of ClientDirectory.
type KeyDirectory interface {
	KeySet(ctx context.Context, at ClientID, wanted KeyReference) (KeySet, error)
}

// AssertionReader verifies the signature of an assertion with the key that keyOf finds by the key
// id. It returns the errors of keyOf, and ErrBadAssertion for a malformed JWT, an algorithm that is
// not in AssertionAlgorithms, or a wrong signature.
type AssertionReader interface {
	ReadAssertion(assertion string, keyOf func(KeyReference) (Key, error)) (ClientAssertion, error)
}

// Rate is what happens now, and how much of it may happen in a minute, as at once.
type Rate struct {
	Of        string // such as the calls of a person
	Events    int
	PerMinute int
}

// RateLimit limits events by rates. Each process counts separately.
type RateLimit interface {
	// Take counts the events and returns 0. If a rate does not allow its events now, Take counts
	// nothing for any rate and returns when all of them will.
	Take(now time.Time, rates ...Rate) (wait time.Duration)
}
