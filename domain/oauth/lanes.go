package oauth

import "context"

// Guess is a host token that somebody presents, before it is checked.
type Guess struct {
	By       Requester
	Token    Fingerprint
	Resource string // whose verifier checks the token; "" on the connections page, which asks none
	AtOnce   bool   // it is refused instead of waiting, because a client has sent it with a request
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
	// result. It refuses with WrongHostToken (wrong a moment ago), TooManyGuesses (too many of the
	// network wait) or HostTokenNotVerifiable (checks in the network take too long).
	Enter(ctx context.Context, guess Guess) (leave func(GuessResult), err error)
	// Remember records that a resource's verifier knows a token, as leave does with GuessRight. A
	// refresh, for example, checks a token without a lane.
	Remember(token Fingerprint, resource string)
}
