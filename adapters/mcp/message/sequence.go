package message

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
)

// Sequence numbers the calls of one session.
type Sequence struct {
	mu     sync.Mutex
	last   int64
	recent []recentCall // a ring of the last calls
}

// recentCall is the number of a call, and its id.
type recentCall struct {
	key    uint64 // a hash
	text   string // "" for a long one
	number int64
}

// maxRecentID is longer than a UUID with its quotes.
const maxRecentID = 64

// maxRecent is the number of calls that a cancellation can name. Every session has as many.
const maxRecent = 256

var idSeed = maphash.MakeSeed()

// Next returns the number of the next call.
func (s *Sequence) Next(id ID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	call := recentCall{maphash.String(idSeed, id.Key), id.Text, s.last}
	if len(id.Text) > maxRecentID {
		call.text = ""
	}
	if len(s.recent) < maxRecent {
		s.recent = append(s.recent, call)
	} else {
		s.recent[(s.last-1)%maxRecent] = call
	}
	return s.last
}

// Cancelled returns the number of the call that a cancellation of the id means, which may have been
// answered. A client that repeats its ids leaves open which of its calls it means, and a late
// cancellation must not hit the next one. So it then means the newest call that isGone reports as
// one whose client has gone, or none: a wrong answer costs more than a call that runs to its end.
func (s *Sequence) Cancelled(id ID, isGone func(number int64) bool) (number int64, ok bool) {
	call, ok := s.cancelled(id, isGone)
	return call.number, ok
}

func (s *Sequence) cancelled(id ID, isGone func(number int64) bool) (recentCall, bool) {
	calls := s.withID(id)
	if len(calls) == 1 {
		return calls[0], true
	}
	for _, call := range slices.Backward(calls) {
		if isGone(call.number) {
			return call, true
		}
	}
	return recentCall{}, false
}

// withID returns the recent calls with an id, the newest last.
func (s *Sequence) withID(id ID) (calls []recentCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := maphash.String(idSeed, id.Key)
	for _, call := range s.recent {
		if call.key == wanted {
			calls = append(calls, call)
		}
	}
	slices.SortFunc(calls, func(a, b recentCall) int { return cmp.Compare(a.number, b.number) })
	return calls
}
