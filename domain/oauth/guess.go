package oauth

import (
	"context"
	"time"
)

// Guess is an attempt with a pasted host token, as limits see it (B6). Whether the token is right is not known yet.
type Guess struct {
	By       Requester
	Token    Fingerprint
	Ticket   string // id of the consent page; "" on the connections page
	Resource string // whose verifier checks the token; "" on the connections page, where none does
	Proven   bool   // the browser has shown a proof of work, or has waited
	Holder   bool   // living grants were made with the token
}

// Admission is the answer of a GuessLimit before the token is checked. The zero value admits the guess.
type Admission struct {
	Wrong bool          // the verifier refused this very token a moment ago
	Proof bool          // the guess needs a proof of work, or a wait
	Wait  time.Duration // no guess is admitted before that
}

// Outcome is how an admitted guess ended.
type Outcome int

// The outcomes of a guess.
const (
	Undecided Outcome = iota // the verifier could not decide
	Right
	Wrong
	Abandoned // the client hung up before it was told
)

// GuessLimit slows down and refuses networks that paste wrong tokens (B6). It is safe for concurrent use.
type GuessLimit interface {
	// Admit decides by what is counted, not by the token, so that the answer is the same for a right and a wrong one. An error is
	// ErrUnavailable. Every admitted guess has to be settled.
	Admit(ctx context.Context, guess Guess, now time.Time) (Admission, error)

	// Settle counts a guess that was wrong or abandoned; the same wrong token counts once.
	Settle(ctx context.Context, guess Guess, outcome Outcome, now time.Time)

	// Turn admits a browser without script that has waited. Each network has a limited number of turns in a time.
	Turn(by Requester, now time.Time) bool

	// Spend reports whether a proof is used for the first time.
	Spend(proof Digest, now time.Time) bool
}
