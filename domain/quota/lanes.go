package quota

import (
	"context"

	"github.com/pasteport/pasteport/domain/seal"
)

// Guess is a host token that somebody presents, before it is checked.
type Guess struct {
	By       Requester
	Token    seal.Fingerprint
	Resource string // whose verifier checks the token; "" on the connections page, which asks none
	AtOnce   bool   // it is refused instead of waiting, because a client has sent it with a request
}

// Result is what a check has found.
type Result int

// The results of a check.
const (
	Undecided Result = iota // the verifier failed
	Right
	Wrong
)

// Lanes makes networks take turns that present many wrong tokens. Implementations are safe for
// concurrent use.
type Lanes interface {
	// Enter returns when the token may be checked. The caller then calls leave once, with the
	// result. It refuses with WrongHostToken (wrong a moment ago), TooManyGuesses (too many of the
	// network wait) or HostTokenNotVerifiable (checks in the network take too long).
	Enter(ctx context.Context, guess Guess) (leave func(Result), err error)
	// Remember records that a resource's verifier knows a token, as leave does with Right. A
	// refresh, for example, checks a token without a lane.
	Remember(token seal.Fingerprint, resource string)
}
