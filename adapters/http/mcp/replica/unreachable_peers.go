package replica

import (
	"maps"
	"sync"
	"time"
)

const (
	// deathLimit is how long a replica may be silent before its sessions count as lost. A pause of its process or its machine is shorter.
	deathLimit = 10 * time.Second
	// silenceMemory is how long a silence is remembered. One that is noticed later is another silence.
	silenceMemory = 10 * time.Minute
)

// unreachablePeers are the replicas that do not answer although the bus works.
type unreachablePeers struct {
	mu    sync.Mutex
	known map[string]silence
}

// silence is when it was noticed first and last.
type silence struct{ first, last time.Time }

// note records that a replica has not answered, and returns for how long it has been silent.
func (u *unreachablePeers) note(peer string, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.known, func(_ string, one silence) bool { return now.Sub(one.last) > silenceMemory })
	if u.known == nil {
		u.known = map[string]silence{}
	}
	one, known := u.known[peer]
	if !known {
		one.first = now
	}
	one.last = now
	u.known[peer] = one
	return now.Sub(one.first)
}

// forget removes a replica that has answered.
func (u *unreachablePeers) forget(peer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.known, peer)
}
