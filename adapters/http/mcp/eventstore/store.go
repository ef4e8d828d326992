// Package eventstore keeps the newest events of all sessions of an MCP server, so that a client whose stream breaks can resume it with
// Last-Event-ID. Store implements the event store of the Go SDK on a ring buffer of fixed size.
package eventstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	segjson "github.com/segmentio/encoding/json"
)

const (
	leastSpan   = 256 // bytes that an event takes at least, so that there are never many more streams than can be looked after
	sizeAt      = 16  // in a header, behind the key
	beforeAt    = sizeAt + 4
	headerBytes = beforeAt + 8
	tooLong     = math.MaxUint32 // instead of the size of an event that does not fit
	openStreams = 1000           // of a session that are not answered: some never are, as of a request whose id is in use
)

// Store lets clients resume a stream that broke: an sdk.EventStore of the newest events. The SDK also tells it when a session has ended:
// a goroutine that waits for that would cost as much as the session.
//
// The SDK's own keeps something of every call until its session ends, and drops the first event of all streams when it is full. This one
// forgets what is oldest, and a stream that was answered with the last of its events; so of a batch, whose stream has several answers, the
// later ones may be lost. Nothing of an event is a pointer, which garbage collection would follow at every turn.
type Store struct {
	ended func(session string)

	mu      sync.Mutex
	kept    ring // headers and events, the oldest first
	streams map[streamKey]progress
	open    map[string][]streamKey // by session: streams that are not answered, of which the first, "", never is
}

// streamKey stands for a stream of a session.
type streamKey [sizeAt]byte

// progress is how far a stream has come.
type progress struct {
	first, next int    // indexes of the first event that is kept, and of the one that follows the last
	last        uint64 // where the last is
	answered    bool
}

// New makes a store of that many bytes. It calls ended when a session has ended.
func New(bytes int, ended func(session string)) *Store {
	return &Store{ended: ended, kept: newRing(bytes), streams: map[streamKey]progress{}, open: map[string][]streamKey{}}
}

func keyOf(session, stream string) streamKey {
	var place [128]byte
	sum := sha256.Sum256(append(append(append(place[:0], session...), 0), stream...))
	return streamKey(sum[:])
}

// Open implements sdk.EventStore.
func (s *Store) Open(_ context.Context, session, stream string) error {
	key := keyOf(session, stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	open, live := s.open[session]
	if _, known := s.streams[key]; known || !live && stream != "" { // a request may come to a session that has just ended
		return nil
	}
	if len(open) == openStreams {
		s.answered(open[1])
		open = slices.Delete(open, 1, 2)
	}
	s.streams[key], s.open[session] = progress{}, append(open, key)
	return nil
}

// Append implements sdk.EventStore. It returns sdk.ErrEventsPurged when the event is not kept; whoever reads the stream gets it all the same.
func (s *Store) Append(_ context.Context, session, stream string, event []byte) error {
	head := header{key: keyOf(session, stream), size: uint32(len(event))}
	answer := answers(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if headerBytes+len(event) > s.kept.capacity() {
		head.size, event = tooLong, nil
	}
	if !s.makeRoom(head) {
		return sdk.ErrEventsPurged
	}
	p := s.streams[head.key]
	head.before, p.last = p.last, s.kept.end
	p.next++
	p.answered = p.answered || answer
	s.streams[head.key] = p
	bytes := head.encode()
	s.kept.write(bytes[:])
	s.kept.write(event)
	s.kept.end = p.last + uint64(head.span())
	if open, live := s.open[session]; live && answer {
		s.open[session] = slices.DeleteFunc(open, func(k streamKey) bool { return k == head.key })
	}
	if head.size == tooLong {
		return sdk.ErrEventsPurged
	}
	return nil
}

// makeRoom forgets what is oldest, and reports that the stream of the event is not forgotten by then.
func (s *Store) makeRoom(h header) (known bool) {
	_, known = s.streams[h.key]
	for known && s.kept.room() < h.span() {
		s.forgetOldest()
		_, known = s.streams[h.key]
	}
	return known
}

// answered notes that nothing more is awaited of a stream.
func (s *Store) answered(key streamKey) {
	p := s.streams[key]
	p.answered = true
	s.keep(key, p)
}

// keep remembers the progress of a stream for as long as somebody can ask for it.
func (s *Store) keep(key streamKey, p progress) {
	if p.answered && p.first == p.next {
		delete(s.streams, key)
		return
	}
	s.streams[key] = p
}

func (s *Store) forgetOldest() {
	head := s.header(s.kept.begin)
	s.kept.begin += uint64(head.span())
	p := s.streams[head.key]
	p.first++
	s.keep(head.key, p)
}

// SessionClosed implements sdk.EventStore.
func (s *Store) SessionClosed(_ context.Context, session string) error {
	s.ended(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.open[session] {
		s.answered(key)
	}
	delete(s.open, session)
	if len(s.open) == 0 { // no session can resume, so the memory is freed
		s.kept, s.streams = newRing(s.kept.capacity()), map[streamKey]progress{}
	}
	return nil
}

// After implements sdk.EventStore.
func (s *Store) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		missed, err := s.after(keyOf(session, stream), index)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, event := range missed {
			if !yield(event, nil) {
				return
			}
		}
	}
}

func (s *Store) after(key streamKey, index int) (missed [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.streams[key]
	if known && index < 0 { // whoever has seen nothing begins with what there is, instead of never again
		index, p.first, p.next = -1, 0, p.next-p.first
	}
	if !known || index+1 < p.first || index >= p.next {
		return nil, sdk.ErrEventsPurged
	}
	place := p.last
	for range p.next - 1 - index {
		head := s.header(place)
		if head.size == tooLong {
			return nil, sdk.ErrEventsPurged
		}
		event := make([]byte, head.size)
		s.kept.read(place+headerBytes, event)
		missed, place = append(missed, event), head.before
	}
	slices.Reverse(missed)
	s.streams[key] = p
	return missed, nil
}

// header is before each event.
type header struct {
	key    streamKey
	size   uint32
	before uint64 // where the one before it in its stream is, or was
}

// span is how many bytes it takes, with its event.
func (h header) span() int {
	if h.size == tooLong {
		return leastSpan
	}
	return max(leastSpan, headerBytes+int(h.size))
}

func (h header) encode() (bytes [headerBytes]byte) {
	copy(bytes[:], h.key[:])
	binary.LittleEndian.PutUint32(bytes[sizeAt:], h.size)
	binary.LittleEndian.PutUint64(bytes[beforeAt:], h.before)
	return bytes
}

func (s *Store) header(place uint64) (h header) {
	var bytes [headerBytes]byte
	s.kept.read(place, bytes[:])
	copy(h.key[:], bytes[:])
	h.size, h.before = binary.LittleEndian.Uint32(bytes[sizeAt:]), binary.LittleEndian.Uint64(bytes[beforeAt:])
	return h
}

// answers reports that an event answers a request, after which its stream has no other.
func answers(event []byte) bool {
	t := segjson.NewTokenizer(event)
	defer t.Reset(nil)
	for t.Next() {
		if !t.IsKey || t.Depth != 1 {
			continue
		}
		switch string(t.Value) {
		case `"method"`:
			return false
		case `"result"`, `"error"`:
			return true
		}
	}
	return false
}
