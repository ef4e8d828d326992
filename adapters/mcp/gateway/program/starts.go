package program

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

const (
	startInterval = 2 * time.Second // beyond the starts at once
	maxStarters   = 10_000
)

// starts limits how often a person starts the program, because each start costs much more than the
// request for it.
type starts struct {
	atOnce int

	mu     sync.Mutex
	people *lru.LRU[string, *rate.Limiter]
}

func newStarts(atOnce int) *starts {
	people, _ := lru.NewLRU[string, *rate.Limiter](maxStarters, nil) // fails only without a size
	return &starts{atOnce: atOnce, people: people}
}

func (s *starts) allow(person string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter, known := s.people.Get(person)
	if !known {
		limiter = rate.NewLimiter(rate.Every(startInterval), s.atOnce)
		s.people.Add(person, limiter)
	}
	return limiter.Allow()
}
