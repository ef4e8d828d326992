package throttle

import (
	"net/netip"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// pendingWait is how long to stay away while other guesses of the same window are checked.
const pendingWait = time.Second

// windows returns the windows that a wrong token counts in: that of all networks first, then those around the address.
func (g *Guesses) windows(guess oauth.Guess) ([]oauth.Window, error) {
	all, err := g.keys.Window("guesses/all", "", g.limits.MaxWrongTokens, allWindow)
	if err != nil {
		return nil, err
	}
	windows := []oauth.Window{all}
	for _, network := range guess.By.Networks() {
		window, err := g.keys.Window("guesses/network", network.String(), g.limitOf(network), networkWindow)
		if err != nil {
			return nil, err
		}
		windows = append(windows, window)
	}
	if !g.limits.WeakTokens || guess.Ticket == "" {
		return windows, nil
	}
	ticket, err := g.keys.Window("guesses/ticket", guess.Ticket, g.limits.MaxWrongTokensPerAddress, ticketWindow)
	return append(windows, ticket), err
}

// limitOf grows with the network.
func (g *Guesses) limitOf(network netip.Prefix) int {
	switch network.Bits() {
	case 32, 64:
		return g.limits.MaxWrongTokensPerAddress
	case 24, 56:
		return g.limits.MaxWrongTokensPerNetwork
	}
	return g.limits.MaxWrongTokensPerPrefix48
}

// reserve takes a place in each window, unless one is full. Guesses that are checked at the same moment count too, so that a limit on
// weak tokens is exact in one process.
func (g *Guesses) reserve(windows []oauth.Window, counts []oauth.WindowCount, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range windows {
		wait = max(wait, w.Full(counts[i], now))
		if counts[i].Taken+g.pending[w.Name] >= w.Limit {
			wait = max(wait, pendingWait)
		}
	}
	if wait > 0 {
		return wait
	}
	for _, w := range windows {
		g.pending[w.Name]++
	}
	return 0
}

func (g *Guesses) release(windows []oauth.Window) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range windows {
		if g.pending[w.Name]--; g.pending[w.Name] <= 0 {
			delete(g.pending, w.Name)
		}
	}
}
