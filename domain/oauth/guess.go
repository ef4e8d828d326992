package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// Guess is a pasted host token before its verification.
type Guess struct {
	By        Requester
	Token     Fingerprint
	Ticket    string // id of the consent page; "" on the connections page
	Resource  string // the resource whose verifier checks the token; "" on the connections page, which uses no verifier
	Proven    bool   // the browser has sent a proof of work, or has waited
	HasGrants bool   // the token has active grants
}

// Admission is the decision of a GuessLimit before the token is verified. The zero value admits the
// guess.
type Admission struct {
	KnownWrong bool          // the verifier refused the same token a few seconds ago
	NeedsProof bool          // the guess needs a proof of work, or a wait
	Wait       time.Duration // until the next guess is admitted; 0 when this one is
}

// GuessResult is the result of verifying an admitted guess.
type GuessResult int

// The results of a guess.
const (
	GuessUndecided GuessResult = iota // the verifier failed
	GuessRight
	GuessWrong
)

// GuessLimit slows down and refuses networks that paste wrong tokens. Implementations are safe for
// concurrent use.
type GuessLimit interface {
	// Admit decides by the counts of wrong tokens, not by whether the token is right. Its only
	// error is ErrUnavailable. The caller must call RecordResult for every admitted guess.
	Admit(ctx context.Context, guess Guess, now time.Time) (Admission, error)

	// RecordResult counts a wrong guess. It counts the same wrong token once in each process.
	RecordResult(ctx context.Context, guess Guess, result GuessResult, now time.Time)

	// MayLookUp reports whether the caller may look up whether a token of a network that needs
	// proofs has active grants. It limits the rate of these lookups.
	MayLookUp(by Requester, now time.Time) bool

	// AdmitAfterWait reports whether a browser without script is admitted after its wait. Each
	// network has a limited rate. A used proof is not admitted and does not count.
	AdmitAfterWait(by Requester, proof Digest, now time.Time) bool

	// UseProof marks a proof as used, and reports whether it was unused.
	UseProof(proof Digest) bool
}

// Window is a fixed-window rate limit: Limit events within Length of the first one. The name of one
// that is counted in a store is a keyed hash (NewWindow), so that the store contains neither the
// kind of event nor an address.
type Window struct {
	Name   Digest
	Limit  int
	Length time.Duration
}

// WindowCount is the state of a window. The zero value means that the window is over, or has no
// event.
type WindowCount struct {
	Taken int
	Ends  time.Time
}

// Wait returns how long the window stays full, 0 when it is not.
func (w Window) Wait(count WindowCount, now time.Time) time.Duration {
	if count.Taken < w.Limit {
		return 0
	}
	return max(count.Ends.Sub(now), 0)
}

// MaxClockDifference is the tolerated difference between the clocks of replicas, and between the
// times that concurrent requests have read.
const MaxClockDifference = 10 * time.Second

// Current returns the stored count of a window, or zero when the window is over. A window that ends
// later than its length and MaxClockDifference from now was opened by a wrong clock.
func (w Window) Current(stored WindowCount, now time.Time) WindowCount {
	if left := stored.Ends.Sub(now); left <= 0 || left > w.Length+MaxClockDifference {
		return WindowCount{}
	}
	return stored
}

// WindowCounter is a Store that counts for all processes that use it. Every error is an outage.
type WindowCounter interface {
	// Counts returns the states of the windows, in the same order. It takes no locks.
	Counts(ctx context.Context, now time.Time, windows ...Window) ([]WindowCount, error)

	// Count atomically adds one to each of the windows, which have different names, and also to
	// full ones.
	Count(ctx context.Context, now time.Time, windows ...Window) error

	// SharedByReplicas reports whether other machines use the same counters. DeleteExpired deletes
	// windows that are over.
	SharedByReplicas() bool
}

// NewWindow returns the window of one subject, such as an address, under a limit of this name.
func NewWindow(keys seal.KeyRing, name, subject string, limit int, length time.Duration) (Window, error) {
	tags, err := keys.Tags("window\x00"+name, subject)
	if err != nil {
		return Window{}, fmt.Errorf("deriving the name of a window: %w", err)
	}
	return Window{Digest(tags[0]), limit, length}, nil
}
