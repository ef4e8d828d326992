// Package throttle counts what strangers get wrong, in bounded memory of this process.
package throttle

import (
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

// Attempt implements oauth.GuessLimit.
func (g *Guesses) Attempt(address, ticket string, now time.Time) (settle func(failed bool), wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	windows := g.windows(address, ticket)
	for _, w := range windows {
		if wait := w.wait(now); wait > 0 {
			return nil, wait
		}
	}
	for _, w := range windows {
		w.pending++
	}
	return func(failed bool) { g.settle(windows, failed) }, 0
}

func (g *Guesses) settle(windows []*window, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range windows {
		w.pending--
		if failed {
			w.count++
		}
	}
}

func (g *Guesses) windows(address, ticket string) []*window {
	return []*window{
		remember(g.addresses, address, window{limit: perAddress, length: perAddressWindow}),
		remember(g.tickets, ticket, window{limit: perTicket, length: perTicketWindow}),
		&g.all,
	}
}
