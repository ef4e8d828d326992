package oauth

import "context"

// Guess is a host token that somebody presents, before it is checked.
type Guess struct {
	By       Requester
	Token    Fingerprint
	Resource string // whose verifier checks the token; "" on the connections page, which asks none
	AtOnce   bool   // a client waits for the answer, which should not be late
}

// GuessResult is what a check has found.
type GuessResult int

// The results of a check.
const (
	GuessUndecided GuessResult = iota // the verifier failed
	GuessRight
	GuessWrong
)

// Lanes makes networks take turns that present many wrong tokens. Implementations are safe for
// concurrent use.
type Lanes interface {
	// Enter returns when the token may be checked. The caller then calls leave once, with the
	// result. Enter refuses with WrongHostToken a token that was wrong a moment ago, and with
	// TooManyGuesses when too many of the network wait.
	Enter(ctx context.Context, guess Guess) (leave func(GuessResult), err error)
}
