package limits

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// pendingWait is the wait of a guess that is refused only because other guesses in its window are
// pending.
const pendingWait = time.Second

// windows returns the windows in which a wrong token counts: first that of all networks, then those
// of the networks around the address and, for weak tokens, that of the ticket.
func (g *Guesses) windows(guess oauth.Guess) ([]oauth.Window, error) {
	all, err := oauth.NewWindow(g.keys, "guesses/all", "", g.limits.MaxWrongTokens, allWindow)
	if err != nil {
		return nil, err
	}
	windows := []oauth.Window{all}
	for _, network := range guess.By.Networks() {
		window, err := oauth.NewWindow(g.keys, "guesses/network", network.String(), g.limits.MaxWrongTokensIn(network),
			networkWindow)
		if err != nil {
			return nil, err
		}
		windows = append(windows, window)
	}
	if !g.limits.WeakTokens || guess.Ticket == "" {
		return windows, nil
	}
	ticket, err := oauth.NewWindow(g.keys, "guesses/ticket", guess.Ticket, g.limits.MaxWrongTokensPerAddress,
		ticketWindow)
	return append(windows, ticket), err
}

// admitWeak reserves a guess in each window, unless one is full. The guesses that are pending when
// it does so and the counts that it reads afterwards together give an exact limit in one process: a
// guess that finishes in between is in both.
func (g *Guesses) admitWeak(ctx context.Context, windows []oauth.Window, now time.Time) (oauth.Admission, error) {
	pending := g.reserve(windows)
	counts, err := g.counter.Counts(ctx, now, windows...)
	if err != nil {
		g.release(windows)
		return oauth.Admission{}, unavailable(err)
	}
	var wait time.Duration
	for i, w := range windows {
		wait = max(wait, w.Wait(counts[i], now))
		if counts[i].Taken+pending[i] >= w.Limit {
			wait = max(wait, pendingWait)
		}
	}
	if wait > 0 {
		g.release(windows)
	}
	return oauth.Admission{Wait: wait}, nil
}

// reserve adds a pending guess to each window, and returns how many others are pending there.
func (g *Guesses) reserve(windows []oauth.Window) (pending []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range windows {
		pending = append(pending, g.pending[w.Name])
		g.pending[w.Name]++
	}
	return pending
}

// release frees the places of a guess.
func (g *Guesses) release(windows []oauth.Window) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range windows {
		if g.pending[w.Name]--; g.pending[w.Name] <= 0 {
			delete(g.pending, w.Name)
		}
	}
}
