// Package throttle counts what strangers get wrong: in bounded memory of this process, or in a store for all that share it.
package throttle

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// The limits of B6: failures per window. A ticket's window outlives the ticket, so its fifth failure is its last.
const (
	perAddress       = 5
	perAddressWindow = 5 * time.Minute
	perTicket        = 5
	perTicketWindow  = time.Hour
	altogether       = 100
	altogetherWindow = time.Minute
	remembered       = 10_000 // addresses, and as many tickets; the least recently seen goes first
)

// Guesses is an oauth.GuessLimit. It is safe for concurrent use.
type Guesses struct {
	mu        sync.Mutex
	addresses *lru.Cache[string, *window]
	tickets   *lru.Cache[string, *window]
	all       window
}

var _ oauth.GuessLimit = (*Guesses)(nil)

// NewGuesses starts with nobody having failed.
func NewGuesses() *Guesses {
	return &Guesses{addresses: newWindows(), tickets: newWindows(), all: window{limit: altogether, length: altogetherWindow}}
}

// Attempt implements oauth.GuessLimit; it never fails.
func (g *Guesses) Attempt(_ context.Context, address, ticket string, now time.Time) (settle func(failed bool), wait time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	windows := g.windows(address, ticket)
	for _, w := range windows {
		wait = max(wait, w.wait(now))
	}
	if wait > 0 {
		return nil, wait, nil
	}
	for _, w := range windows {
		w.pending++
	}
	return func(failed bool) { g.settle(address, ticket, windows, failed) }, 0, nil
}

func (g *Guesses) settle(address, ticket string, windows []*window, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range windows {
		w.pending--
		if failed {
			w.count++
		}
	}
	forget(g.addresses, address)
	forget(g.tickets, ticket)
}

func (g *Guesses) windows(address, ticket string) []*window {
	all := []*window{remember(g.addresses, address, window{limit: perAddress, length: perAddressWindow}), &g.all}
	if ticket != "" {
		all = append(all, remember(g.tickets, ticket, window{limit: perTicket, length: perTicketWindow}))
	}
	return all
}
