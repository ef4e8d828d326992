// Package limits counts what people and networks may do, and makes them wait. Guesses counts wrong
// host tokens by network, in the memory of this process or in a store that replicas share. Queue
// gives slots to networks in turn. Rates, Registrations, Fetches and Failures count events of one
// process, and Memory bounds the bodies that it holds.
package limits

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	networkWindow = 5 * time.Minute
	allWindow     = time.Minute
	ticketWindow  = time.Hour // longer than the lifetime of a ticket

	maxKeys      = 30_000          // of each cache
	rejectedFor  = 5 * time.Second // how long a rejected token is refused without verification
	countTimeout = 5 * time.Second

	admittedPerWait = 10 // browsers without script that an address has admitted within ProofWait
	admittedBurst   = 5
	lookUpInterval  = time.Second // for one address
	lookUpBurst     = 10
)

// Guesses is an oauth.GuessLimit. It is safe for concurrent use.
type Guesses struct {
	counter oauth.WindowCounter
	keys    seal.KeyRing
	limits  oauth.Limits
	logger  *slog.Logger

	rejected times[rejection]
	counted  times[oauth.Fingerprint]
	known    knownAddresses
	attempts *Rates[oauth.Fingerprint] // with tokens that have active grants
	lookUps  networkRates
	waited   networkRates // browsers without script, after their wait
	proofs   *lru.Cache[oauth.Digest, struct{}]

	mu      sync.Mutex           // protects counted and pending
	pending map[oauth.Digest]int // number of guesses without a result by window name, with WeakTokens
}

// rejection identifies a token that the verifier of a resource has rejected.
type rejection struct {
	token    oauth.Fingerprint
	resource string
}

var _ oauth.GuessLimit = (*Guesses)(nil)

// NewGuesses returns a limit that counts wrong tokens with counter. The names of its windows are
// derived from the server secret.
func NewGuesses(counter oauth.WindowCounter, settings *oauth.Settings, logger *slog.Logger) *Guesses {
	return &Guesses{
		counter:  counter,
		keys:     settings.Keys,
		limits:   settings.Limits,
		logger:   logger,
		rejected: newTimes[rejection](),
		counted:  newTimes[oauth.Fingerprint](),
		known:    newKnownAddresses(),
		proofs:   newCache[oauth.Digest, struct{}](maxKeys),
		attempts: perMinute[oauth.Fingerprint](settings.Limits.MaxAttemptsPerToken),
		lookUps:  networkRates{Rates: NewRates[netip.Prefix](lookUpInterval, lookUpBurst)},
		waited: networkRates{
			Rates: NewRates[netip.Prefix](settings.Limits.ProofWait/admittedPerWait, admittedBurst),
		},
		pending: map[oauth.Digest]int{},
	}
}

// Admit implements oauth.GuessLimit.
func (g *Guesses) Admit(ctx context.Context, guess oauth.Guess, now time.Time) (oauth.Admission, error) {
	if guess.Resource != "" && g.rejected.within(rejection{guess.Token, guess.Resource}, rejectedFor, now) {
		return oauth.Admission{KnownWrong: true}, nil
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
	if guess.Proven || !g.needsProof(guess, windows, counts, now) {
		return oauth.Admission{}, nil
	}
	return oauth.Admission{NeedsProof: !guess.HasGrants || g.attempts.Take(guess.Token, now) > 0}, nil
}

func unavailable(err error) error {
	return fmt.Errorf("%w: counting wrong tokens: %w", oauth.ErrUnavailable, err)
}

// needsProof reports whether too many wrong tokens came from a network around the address, or from
// all networks together if the address is not known. The first window is that of all networks.
func (g *Guesses) needsProof(guess oauth.Guess, windows []oauth.Window, counts []oauth.WindowCount,
	now time.Time) bool {
	for i := range windows[1:] {
		if windows[i+1].Wait(counts[i+1], now) > 0 {
			return true
		}
	}
	return windows[0].Wait(counts[0], now) > 0 && !g.known.has(guess.By.Networks()[0], now)
}

// RecordResult implements oauth.GuessLimit.
func (g *Guesses) RecordResult(ctx context.Context, guess oauth.Guess, result oauth.GuessResult, now time.Time) {
	if result == oauth.GuessWrong && guess.Resource != "" {
		g.rejected.add(rejection{guess.Token, guess.Resource}, now)
	}
	if !guess.By.Limited() {
		return
	}
	if result == oauth.GuessRight {
		g.known.add(guess.By.Networks()[0], guess.Token, now)
	}
	if result != oauth.GuessWrong && !g.limits.WeakTokens {
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
	if result == oauth.GuessWrong && !guess.HasGrants { // attempts has counted it already
		g.count(ctx, guess, windows, now)
	}
}

// count adds a wrong token to its windows, unless it was counted within networkWindow. It does so
// even if the client has disconnected.
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

// isNew reports whether the token was not counted within networkWindow, and marks it as counted.
func (g *Guesses) isNew(token oauth.Fingerprint, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counted.within(token, networkWindow, now) {
		return false
	}
	g.counted.add(token, now)
	return true
}

// MayLookUp implements oauth.GuessLimit.
func (g *Guesses) MayLookUp(by oauth.Requester, now time.Time) bool {
	return g.lookUps.take(by, now) == 0
}

// AdmitAfterWait implements oauth.GuessLimit.
func (g *Guesses) AdmitAfterWait(by oauth.Requester, proof oauth.Digest, now time.Time) bool {
	return !g.proofs.Contains(proof) && g.waited.take(by, now) == 0
}

// UseProof implements oauth.GuessLimit.
func (g *Guesses) UseProof(proof oauth.Digest) bool {
	used, _ := g.proofs.ContainsOrAdd(proof, struct{}{})
	return !used
}
