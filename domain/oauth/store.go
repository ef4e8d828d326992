package oauth

import (
	"bytes"
	"context"
	"iter"
	"time"
)

// Store keeps codes and grants, apart from the site's content. Every state change is a closure over
// the newest state, whose result the store keeps all or nothing, so that single use holds in every
// implementation; features/storespec is its contract. The store may run a closure again after
// another process has changed a row, so a closure changes only its argument. When it returns an
// error, the store returns that error and keeps nothing.
//
// bootstrap finds optional capabilities by type assertion: UseRecorder, AuthorizationLister,
// client.DocumentStore, SecretKeeper, SecretVerifier, EndWatcher, SharedStore and attempt.Log.
// A host that wraps its store has to implement those that it needs, because the wrapper hides them.
type Store interface {
	// Find returns the codes and grants of a selection.
	Find(ctx context.Context, of Selection) (Authorizations, error)

	// Change applies change to the codes and grants of a selection, and keeps all that it leaves
	// there: those that it has changed, replaced by others with their id, or appended. The change
	// also sees the grant of a redemption that ended before it.
	Change(ctx context.Context, of Selection, change func(*Authorizations) error) error

	// UseOnce records that an assertion was used, until forgetAfter. Of several calls with one
	// assertion exactly one succeeds. ErrDuplicate.
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
	// Known is what the caller of Change has read, nil if nothing. A store that compares versions
	// may begin with it, and reads the newest state when it is refused or overtaken.
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

// UseRecorder is a Store that keeps the last uses of many grants with little work. With another
// store each is a Change.
type UseRecorder interface {
	// RecordUse keeps the last uses of grants, by id, for each the later of what it has and what it
	// gets. It ignores unknown ids, and undoes no Change; a Change keeps the last use that is
	// stored.
	RecordUse(ctx context.Context, uses map[string]Use) error
}

// AuthorizationLister is a Store that lists its codes and grants.
type AuthorizationLister interface {
	// Authorizations iterates over the issued codes and all grants, also those that have ended, the
	// oldest first. The loop body may change the store, so the iteration yields outside of locks
	// and transactions; it lists a code that is redeemed meanwhile once. An error ends it.
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
