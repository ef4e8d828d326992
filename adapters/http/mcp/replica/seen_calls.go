package replica

import (
	"sync"
	"time"
)

// seenCalls holds the ids of calls for longer than their messages are fresh, so that a replayed message is refused.
type seenCalls struct {
	mu           sync.Mutex
	rotated      time.Time
	older, newer map[string]struct{}
}

// first adds a call, and reports whether it is new.
func (s *seenCalls) first(call string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newer == nil || now.Sub(s.rotated) > 2*freshness { // the clock of a sender may be ahead by freshness
		s.rotated, s.older, s.newer = now, s.newer, map[string]struct{}{}
	}
	_, old := s.older[call]
	_, recent := s.newer[call]
	s.newer[call] = struct{}{}
	return !old && !recent
}
