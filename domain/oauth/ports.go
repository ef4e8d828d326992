package oauth

import "context"

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
