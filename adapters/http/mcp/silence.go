package mcp

import (
	"maps"
	"sync"
	"time"
)

const (
	// deathLimit is how long a replica is silent until its sessions are taken for lost. A pause of its process or its machine is shorter.
	deathLimit = 10 * time.Second
	// silenceMemory is for how long it is known that a replica was silent; what nobody has met since then was another silence.
	silenceMemory = 10 * time.Minute
)

// silences are those of replicas that do not answer, though the bus does.
type silences struct {
	mu    sync.Mutex
	known map[string]silence
}

// silence is when it was met first and last.
type silence struct{ first, last time.Time }

// meet notes that a replica has not answered, and returns for how long that is known.
func (s *silences) meet(replica string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(_ string, one silence) bool { return now.Sub(one.last) > silenceMemory })
	if s.known == nil {
		s.known = map[string]silence{}
	}
	one, known := s.known[replica]
	if !known {
		one.first = now
	}
	one.last = now
	s.known[replica] = one
	return now.Sub(one.first)
}

// end forgets the silence of a replica.
func (s *silences) end(replica string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, replica)
}
