package replica

import (
	"sync"
	"time"
)

// seenCalls knows which calls there were for longer than a message is fresh, so that a repeated one calls nothing again.
type seenCalls struct {
	mu           sync.Mutex
	turned       time.Time
	older, newer map[string]struct{}
}

// first reports whether the call is met for the first time.
func (s *seenCalls) first(call string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newer == nil || now.Sub(s.turned) > 2*freshness { // the clock of a sender may be ahead by as much
		s.turned, s.older, s.newer = now, s.newer, map[string]struct{}{}
	}
	_, old := s.older[call]
	_, known := s.newer[call]
	s.newer[call] = struct{}{}
	return !old && !known
}
