package oauth

import (
	"context"
	"time"
)

// Guess is a pasted host token that is not verified yet (B6).
type Guess struct {
	By       Requester
	Token    Fingerprint
	Ticket   string // id of the consent page; "" on the connections page
	Resource string // whose verifier checks the token; "" on the connections page, which uses no verifier
	Proven   bool   // the browser has sent a proof of work, or has waited
	Holder   bool   // the token has living grants
}

// Admission is the answer of a GuessLimit before the token is checked. The zero value admits the guess.
type Admission struct {
	Wrong bool          // the verifier refused this very token a moment ago
	Proof bool          // the guess needs a proof of work, or a wait
	Wait  time.Duration // until the next guess is admitted; 0 when this one is
}

// Outcome is how an admitted guess ended.
type Outcome int

// The outcomes of a guess.
const (
	Undecided Outcome = iota // the verifier could not decide
	Right
	Wrong
)

// GuessLimit slows down and refuses networks that paste wrong tokens (B6). It is safe for concurrent use.
type GuessLimit interface {
	// Admit decides by the counts, not by the token, so that the answer is the same for a right and a wrong token. Its only error is
	// ErrUnavailable. The caller calls Settle for every admitted guess.
	Admit(ctx context.Context, guess Guess, now time.Time) (Admission, error)

	// Settle counts a guess that was wrong. The same wrong token counts once in each process.
	Settle(ctx context.Context, guess Guess, outcome Outcome, now time.Time)

	// MayLookUp reports whether a network that needs proofs may have one more token looked up among those with living grants.
	MayLookUp(by Requester, now time.Time) bool

	// Turn reports whether a browser without script that has waited is admitted. Each network has a limited rate of turns. A used proof
	// takes none.
	Turn(by Requester, proof Digest, now time.Time) bool

	// Spend marks a proof as used, and reports whether it was unused.
	Spend(proof Digest) bool
}
