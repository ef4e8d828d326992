package replica

import (
	"maps"
	"sync"
	"time"
)

const (
	// goneAfter is the silence after which the sessions of a replica count as lost. It is longer than a pause of a process or machine.
	goneAfter = 10 * time.Second
	// silenceMemory is the time after which a silence that was not observed again is forgotten.
	silenceMemory = 10 * time.Minute
)

// unreachablePeers holds the replicas that do not answer although the bus works.
type unreachablePeers struct {
	mu    sync.Mutex
	peers map[string]silence
}

// silence has the times of the first and the last failed message.
type silence struct{ first, last time.Time }

// record records that a replica has not answered, and returns how long it has been silent.
func (u *unreachablePeers) record(peer string, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.peers, func(_ string, s silence) bool { return now.Sub(s.last) > silenceMemory })
	if u.peers == nil {
		u.peers = map[string]silence{}
	}
	s, found := u.peers[peer]
	if !found {
		s.first = now
	}
	s.last = now
	u.peers[peer] = s
	return now.Sub(s.first)
}

// forget removes a replica that has answered.
func (u *unreachablePeers) forget(peer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.peers, peer)
}
