// Package throttle implements the limits on wrong tokens. Guesses counts wrong host tokens by network, in the memory of this process or
// in a store that replicas share, and Failures counts unknown secrets at the token endpoint.
package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/adapters/timestamps"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	networkWindow = 5 * time.Minute
	allWindow     = time.Minute
	ticketWindow  = time.Hour // longer than a ticket lives

	remembered   = 10_000 // tokens, addresses and proofs, each
	rejectedFor  = 5 * time.Second
	countTimeout = 5 * time.Second
)

// Guesses is an oauth.GuessLimit. It is safe for concurrent use.
type Guesses struct {
	counter oauth.WindowCounter
	keys    seal.KeyRing
	limits  oauth.Limits
	logger  *slog.Logger

	rejected timestamps.Cache[rejection]
	counted  timestamps.Cache[oauth.Fingerprint]
	trust    *trust
	holders  *holders
	lookUps  *turns
	turns    *turns // of browsers without script that have waited
	proofs   *lru.Cache[oauth.Digest, struct{}]

	mu      sync.Mutex           // of counted, settled and pending
	settled int                  // guesses that are not pending any more, with WeakTokens
	pending map[oauth.Digest]int // guesses under way by name of a window, with WeakTokens
}

// rejection is a token that the verifier of a resource has refused.
type rejection struct {
	token    oauth.Fingerprint
	resource string
}

var _ oauth.GuessLimit = (*Guesses)(nil)

// NewGuesses returns a limit that counts with the counter. The names of its windows are derived from the server secret.
func NewGuesses(counter oauth.WindowCounter, settings *oauth.Settings, logger *slog.Logger) *Guesses {
	return &Guesses{
		counter: counter, keys: settings.Keys, limits: settings.Limits, logger: logger,
		rejected: timestamps.New[rejection](remembered), counted: timestamps.New[oauth.Fingerprint](remembered),
		trust: newTrust(), proofs: newCache[oauth.Digest, struct{}](remembered),
		holders: newHolders(settings.Limits.MaxAttemptsPerToken), lookUps: newTurns(lookUpEvery, lookUpsBurst),
		turns: newTurns(settings.Limits.ProofWait/turnsInWait, turnBurst), pending: map[oauth.Digest]int{},
	}
}

// Admit implements oauth.GuessLimit.
func (g *Guesses) Admit(ctx context.Context, guess oauth.Guess, now time.Time) (oauth.Admission, error) {
	if guess.Resource != "" && g.rejected.Within(rejection{guess.Token, guess.Resource}, rejectedFor, now) {
		return oauth.Admission{Wrong: true}, nil
	}
	if !guess.By.Limited() {
		return oauth.Admission{}, nil
	}
	windows, err := g.windows(guess)
	if err != nil {
		return oauth.Admission{}, unavailable(err)
	}
	if g.limits.WeakTokens {
		return g.admitWeak(ctx, windows, now)
	}
	counts, err := g.counter.Counts(ctx, now, windows...)
	if err != nil {
		return oauth.Admission{}, unavailable(err)
	}
	if guess.Proven || !g.demandsProof(guess, windows, counts, now) {
		return oauth.Admission{}, nil
	}
	return oauth.Admission{Proof: !guess.Holder || !g.holders.allow(guess.Token, now)}, nil
}

func unavailable(err error) error {
	return fmt.Errorf("%w: counting wrong tokens: %w", oauth.ErrUnavailable, err)
}

// demandsProof reports whether too many wrong tokens came from a network around the address, or from all networks together while the address
// is unknown. The window of all networks is the first one.
func (g *Guesses) demandsProof(guess oauth.Guess, windows []oauth.Window, counts []oauth.WindowCount, now time.Time) bool {
	for i := range windows[1:] {
		if windows[i+1].Full(counts[i+1], now) > 0 {
			return true
		}
	}
	return windows[0].Full(counts[0], now) > 0 && !g.trust.has(guess.By.Networks()[0], now)
}

// Settle implements oauth.GuessLimit.
func (g *Guesses) Settle(ctx context.Context, guess oauth.Guess, outcome oauth.Outcome, now time.Time) {
	if outcome == oauth.Wrong && guess.Resource != "" {
		g.rejected.Add(rejection{guess.Token, guess.Resource}, now)
	}
	if !guess.By.Limited() {
		return
	}
	if outcome == oauth.Right {
		g.trust.add(guess.By.Networks()[0], guess.Token, now)
	}
	if outcome != oauth.Wrong && !g.limits.WeakTokens {
		return
	}
	windows, err := g.windows(guess)
	if err != nil {
		g.logger.ErrorContext(ctx, "cannot count a wrong token", "error", err)
		return
	}
	if g.limits.WeakTokens {
		defer g.release(windows)
	}
	if outcome == oauth.Wrong && !guess.Holder { // holders has counted it already
		g.count(ctx, guess, windows, now)
	}
}

// count adds a wrong token to its windows, unless it was counted within networkWindow. It also counts when the client has hung up.
func (g *Guesses) count(ctx context.Context, guess oauth.Guess, windows []oauth.Window, now time.Time) {
	if !g.isNew(guess.Token, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	if err := g.counter.Count(ctx, now, windows...); err != nil {
		g.logger.ErrorContext(ctx, "cannot count a wrong token", "error", err)
	}
}

// isNew reports whether the token was not counted within networkWindow, and notes that it is now.
func (g *Guesses) isNew(token oauth.Fingerprint, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counted.Within(token, networkWindow, now) {
		return false
	}
	g.counted.Add(token, now)
	return true
}

// MayLookUp implements oauth.GuessLimit.
func (g *Guesses) MayLookUp(by oauth.Requester, now time.Time) bool { return g.lookUps.take(by, now) }

// Turn implements oauth.GuessLimit.
func (g *Guesses) Turn(by oauth.Requester, proof oauth.Digest, now time.Time) bool {
	return !g.proofs.Contains(proof) && g.turns.take(by, now)
}

// Spend implements oauth.GuessLimit.
func (g *Guesses) Spend(proof oauth.Digest) bool {
	used, _ := g.proofs.ContainsOrAdd(proof, struct{}{})
	return !used
}
