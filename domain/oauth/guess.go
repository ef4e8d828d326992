package oauth

import (
	"context"
	"time"
)

// Guess is a pasted host token before its verification (B6).
type Guess struct {
	By        Requester
	Token     Fingerprint
	Ticket    string // id of the consent page; "" on the connections page
	Resource  string // the resource whose verifier checks the token; "" on the connections page, which uses no verifier
	Proven    bool   // the browser has sent a proof of work, or has waited
	HasGrants bool   // the token has active grants
}

// Admission is the decision of a GuessLimit before the token is verified. The zero value admits the guess.
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

// GuessLimit slows down and refuses networks that paste wrong tokens (B6). Implementations are safe for concurrent use.
type GuessLimit interface {
	// Admit decides by the counts of wrong tokens, not by whether the token is right. Its only error is ErrUnavailable. The caller must call
	// RecordResult for every admitted guess.
	Admit(ctx context.Context, guess Guess, now time.Time) (Admission, error)

	// RecordResult counts a wrong guess. It counts the same wrong token once in each process.
	RecordResult(ctx context.Context, guess Guess, result GuessResult, now time.Time)

	// MayLookUp reports whether the caller may look up whether a token of a network that needs proofs has active grants. It limits the rate of
	// these lookups.
	MayLookUp(by Requester, now time.Time) bool

	// AdmitAfterWait reports whether a browser without script is admitted after its wait. Each network has a limited rate. A used proof is not
	// admitted and does not count.
	AdmitAfterWait(by Requester, proof Digest, now time.Time) bool

	// UseProof marks a proof as used, and reports whether it was unused.
	UseProof(proof Digest) bool
}
