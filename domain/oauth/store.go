package oauth

import (
	"bytes"
	"context"
	"iter"
	"time"
)

// Store keeps codes and grants, apart from the site's content; features/storespec is its contract.
// Every change is a closure over the newest state. The store keeps all of its result or nothing, so
// that a code can be redeemed only once in every implementation. It may run a closure again after
// another process has changed a row, so a second run must do no harm. When a closure returns an
// error, the store returns that error and keeps nothing.
//
// Pasteport finds optional capabilities by type assertion: UseRecorder, AuthorizationLister,
// client.DocumentStore, SecretKeeper, SecretVerifier, EndWatcher, SharedStore and attempt.Log. A
// host that wraps its store has to implement those that it needs: the wrapper hides them.
type Store interface {
	// Find returns the codes and grants of a selection.
	Find(ctx context.Context, of Selection) (Authorizations, error)

	// Change calls change with the codes and grants of a selection, and keeps those that change has
	// modified, replaced by others with the same id, or appended. If a selection has a Host, change
	// sees each issued code or, if the code was redeemed just before, its grant.
	Change(ctx context.Context, of Selection, change func(*Authorizations) error) error

	// UseOnce records that an assertion was used, until forgetAfter. Of several calls with one
	// assertion exactly one succeeds; the others return ErrDuplicate.
	UseOnce(ctx context.Context, assertion Digest, forgetAfter time.Time) error

	// DeleteExpired deletes codes, grants and used assertions whose ForgetAfter is at or before
	// now, and returns their number.
	DeleteExpired(ctx context.Context, now time.Time) (int, error)
}

// Selection chooses the code with an id, the grant with an id, or the issued codes and the active
// grants with a HostPrint. Exactly one of the three is set.
type Selection struct {
	Code, Grant string
	Host        []byte
	// Known is the state that the caller of Change has read, nil for none. A store that compares
	// versions may run the closure on it first, and on the newest state if that run returns an
	// error or another process was faster.
	Known *Authorizations
}

// HasCode reports whether a code is among the selected.
func (s Selection) HasCode(c CodeSnapshot) bool {
	return s.Code == c.ID || s.Host != nil && c.State == IssuedCode && bytes.Equal(s.Host, c.HostPrint)
}

// HasGrant reports whether a grant is among the selected.
func (s Selection) HasGrant(g GrantSnapshot) bool {
	return s.Grant == g.ID || s.Host != nil && g.State == ActiveGrant && bytes.Equal(s.Host, g.HostPrint)
}

// UseRecorder is a Store that keeps the last uses of many grants with little work. With any other
// store, each last use is a Change.
type UseRecorder interface {
	// RecordUse keeps the last uses of grants, by id: Use.Latest of the stored one and the given
	// one. It ignores unknown ids. It undoes no Change, and no Change undoes it.
	RecordUse(ctx context.Context, uses map[string]Use) error
}

// AuthorizationLister is a Store that lists its codes and grants.
type AuthorizationLister interface {
	// Authorizations iterates over the issued codes and all grants, also those that have ended, the
	// oldest first. The loop body may change the store, so the iteration yields outside of locks
	// and transactions. A code that is redeemed meanwhile is listed once. An error ends the list.
	Authorizations(ctx context.Context) iter.Seq2[Authorization, error]
}

// SharedStore is a Store that reports whether replicas on other machines may use it too.
type SharedStore interface{ SharedByReplicas() bool }

// SecretVerifier is a Store that keeps the fingerprint of its server secret, so that a process with
// another secret, which could not open the data, does not start.
type SecretVerifier interface {
	// VerifySecret gets the fingerprints of this process, the newest first
	// (KeyRing.SecretFingerprints). It returns ErrOtherSecret when the stored one is not among
	// them, and otherwise stores the newest.
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
	// EndedSince returns the grants that ended, and the tokens that were revoked, at that time or
	// after it.
	EndedSince(ctx context.Context, since time.Time) (Ended, error)
}

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

// VerifierUnavailable is an error of a BearerVerifier whose text is logged and shown in the trace.
// It must not contain the token or a part of the site's response. The texts of errors that wrap a
// VerifierUnavailable are left out. Of any other error the trace has only the type.
type VerifierUnavailable string

func (v VerifierUnavailable) Error() string { return string(v) }

// UnknownBearer is ErrUnknownBearer with a reason for the operator, which is shown in the trace. It
// must not contain the token or a part of the site's response.
type UnknownBearer string

func (u UnknownBearer) Error() string { return string(u) }

// Unwrap returns ErrUnknownBearer.
func (UnknownBearer) Unwrap() error { return ErrUnknownBearer }

// VerifierMisconfigured is VerifierUnavailable because of a mistake of the operator, so that people
// are not told to try again.
type VerifierMisconfigured string

func (v VerifierMisconfigured) Error() string { return string(v) }

// Unwrap returns the same text as a VerifierUnavailable.
func (v VerifierMisconfigured) Unwrap() error { return VerifierUnavailable(v) }
