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

// maxReads bounds how often one guess reads the counts.
const maxReads = 20

// admitWeak reserves a place in each window, unless one is full. Pending guesses and the counts
// together give an exact limit in one process. If a pending guess finishes while the counts are
// being read, it may be missing from both, so admitWeak reads them again.
func (g *Guesses) admitWeak(ctx context.Context, windows []oauth.Window, now time.Time) (oauth.Admission, error) {
	for range maxReads {
		finished := g.finishedGuesses()
		counts, err := g.counter.Counts(ctx, now, windows...)
		if err != nil {
			return oauth.Admission{}, unavailable(err)
		}
		if wait, current := g.reserve(windows, counts, finished, now); current {
			return oauth.Admission{Wait: wait}, nil
		}
	}
	return oauth.Admission{Wait: pendingWait}, nil
}

func (g *Guesses) finishedGuesses() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.finished
}

// reserve takes a place in each window, or returns how long to wait. current is false if another
// guess has finished since the counts were read.
func (g *Guesses) reserve(windows []oauth.Window, counts []oauth.WindowCount, finished int,
	now time.Time) (wait time.Duration, current bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished != finished {
		return 0, false
	}
	for i, w := range windows {
		wait = max(wait, w.Wait(counts[i], now))
		if counts[i].Taken+g.pending[w.Name] >= w.Limit {
			wait = max(wait, pendingWait)
		}
	}
	if wait > 0 {
		return wait, true
	}
	for _, w := range windows {
		g.pending[w.Name]++
	}
	return 0, true
}

// release frees the places of a guess.
func (g *Guesses) release(windows []oauth.Window) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finished++
	for _, w := range windows {
		if g.pending[w.Name]--; g.pending[w.Name] <= 0 {
			delete(g.pending, w.Name)
		}
	}
}
