package replica

import "sync"

// forwardedCalls holds the calls of this replica with all others, in both directions.
type forwardedCalls struct {
	mu     sync.Mutex
	byID   map[string]*forwardedCall
	byPeer map[string]map[*forwardedCall]struct{}
}

func newForwardedCalls() *forwardedCalls {
	return &forwardedCalls{byID: map[string]*forwardedCall{}, byPeer: map[string]map[*forwardedCall]struct{}{}}
}

// add adds a call, and reports whether its peer is new.
func (f *forwardedCalls) add(c *forwardedCall) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[c.id] = c
	if f.byPeer[c.peer] == nil {
		f.byPeer[c.peer], first = map[*forwardedCall]struct{}{}, true
	}
	f.byPeer[c.peer][c] = struct{}{}
	return first
}

func (f *forwardedCalls) remove(c *forwardedCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byID, c.id)
	delete(f.byPeer[c.peer], c)
}

// find returns the call with that id and that peer, nil if there is none.
func (f *forwardedCalls) find(id, peer string) *forwardedCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.byID[id]; c != nil && c.peer == peer {
		return c
	}
	return nil
}

// removeIdle removes a peer without calls, and reports whether it did.
func (f *forwardedCalls) removeIdle(peer string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byPeer[peer]) > 0 {
		return false
	}
	delete(f.byPeer, peer)
	return true
}

// cancelAll cancels all calls with a peer.
func (f *forwardedCalls) cancelAll(peer string, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.byPeer[peer] {
		c.cancel(cause)
	}
}

func (f *forwardedCalls) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byID)
}
