package replica

import "sync"

// forwardedCalls are the calls of one replica with all others, in both directions.
type forwardedCalls struct {
	mu     sync.Mutex
	byID   map[string]*forwardedCall
	byPeer map[string]map[*forwardedCall]struct{}
}

func newForwardedCalls() *forwardedCalls {
	return &forwardedCalls{byID: map[string]*forwardedCall{}, byPeer: map[string]map[*forwardedCall]struct{}{}}
}

// add reports whether the call is the first with that replica.
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

// find returns the call of that id with that replica, nil when there is none.
func (f *forwardedCalls) find(id, peer string) *forwardedCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.byID[id]; c != nil && c.peer == peer {
		return c
	}
	return nil
}

// forgetIdle forgets a replica with which no call is under way, and reports whether it did.
func (f *forwardedCalls) forgetIdle(peer string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byPeer[peer]) > 0 {
		return false
	}
	delete(f.byPeer, peer)
	return true
}

// cancelAll ends all calls with a replica.
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
