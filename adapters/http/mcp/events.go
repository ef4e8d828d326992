package mcp

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
	keptEvents  = 10 << 20 // bytes of all sessions, with what they are found by
	headerBytes = 16 + 4 + 8
	tooLong     = math.MaxUint32 // instead of the size of an event that does not fit
)

// events lets clients read on where a stream broke off: an sdk.EventStore of the newest events. It is also where the SDK says that a
// session has ended: a goroutine that waits for it would cost as much as the session.
//
// The SDK's own keeps something of every call until its session ends, and drops the first event of all streams when it is full. This one
// forgets what is oldest, and a stream with the last of its events. Nothing of an event is a pointer, which garbage collection would follow
// at every turn.
type events struct {
	ended func(session string)

	mu      sync.Mutex
	kept    ring // headers and events, the oldest first
	streams map[streamKey]progress
	open    map[string][]streamKey // by session: streams that are not answered
}

// streamKey stands for a stream of a session.
type streamKey [16]byte

// progress is how far a stream has come.
type progress struct {
	first, next int    // indexes of the first event that is kept, and of the one that follows the last
	last        uint64 // where the last is
	answered    bool
}

func newEvents(bytes int, ended func(session string)) *events {
	return &events{ended: ended, kept: newRing(bytes), streams: map[streamKey]progress{}, open: map[string][]streamKey{}}
}

func keyOf(session, stream string) streamKey {
	var place [128]byte
	sum := sha256.Sum256(append(append(append(place[:0], session...), 0), stream...))
	return streamKey(sum[:])
}

// Open implements sdk.EventStore.
func (e *events) Open(_ context.Context, session, stream string) error {
	key := keyOf(session, stream)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.streams[key]; !known {
		e.streams[key] = progress{}
		e.open[session] = append(e.open[session], key)
	}
	return nil
}

// Append implements sdk.EventStore.
func (e *events) Append(_ context.Context, session, stream string, event []byte) error {
	key := keyOf(session, stream)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.streams[key]; !known {
		return nil // its session has ended
	}
	answer := answers(event)
	head := header{key: key, size: uint32(len(event))}
	if headerBytes+len(event) > e.kept.capacity() {
		head.size, event = tooLong, nil
	}
	for e.kept.room() < headerBytes+len(event) {
		e.forgetOldest()
	}
	p := e.streams[key]
	head.before, p.last = p.last, e.kept.end
	p.next++
	e.streams[key] = p
	bytes := head.encode()
	e.kept.write(bytes[:])
	e.kept.write(event)
	if !answer {
		return nil
	}
	e.answered(key)
	if open := e.open[session]; slices.Contains(open, key) {
		e.open[session] = slices.DeleteFunc(open, func(k streamKey) bool { return k == key })
	}
	return nil
}

// answered notes that nothing more is awaited of a stream.
func (e *events) answered(key streamKey) {
	p := e.streams[key]
	p.answered = true
	e.keep(key, p)
}

// keep remembers the progress of a stream for as long as somebody can ask for it.
func (e *events) keep(key streamKey, p progress) {
	if p.answered && p.first == p.next {
		delete(e.streams, key)
		return
	}
	e.streams[key] = p
}

func (e *events) forgetOldest() {
	head := e.header(e.kept.begin)
	e.kept.begin += head.span()
	p := e.streams[head.key]
	p.first++
	e.keep(head.key, p)
}

// SessionClosed implements sdk.EventStore.
func (e *events) SessionClosed(_ context.Context, session string) error {
	e.ended(session)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range e.open[session] {
		e.answered(key)
	}
	delete(e.open, session)
	return nil
}

// After implements sdk.EventStore.
func (e *events) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		missed, err := e.after(keyOf(session, stream), index)
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

func (e *events) after(key streamKey, index int) (missed [][]byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, known := e.streams[key]
	if known && index < 0 { // whoever has seen nothing begins with what there is, instead of never again
		index, p.first, p.next = -1, 0, p.next-p.first
		e.streams[key] = p
	}
	if !known || index+1 < p.first || index >= p.next {
		return nil, sdk.ErrEventsPurged
	}
	place := p.last
	for range p.next - 1 - index {
		head := e.header(place)
		if head.size == tooLong {
			return nil, sdk.ErrEventsPurged
		}
		event := make([]byte, head.size)
		e.kept.read(place+headerBytes, event)
		missed, place = append(missed, event), head.before
	}
	slices.Reverse(missed)
	return missed, nil
}

// header is before each event.
type header struct {
	key    streamKey
	size   uint32
	before uint64 // where the one before it in its stream is, or was
}

// span is how many bytes it takes, with its event.
func (h header) span() uint64 {
	if h.size == tooLong {
		return headerBytes
	}
	return headerBytes + uint64(h.size)
}

func (h header) encode() (bytes [headerBytes]byte) {
	copy(bytes[:], h.key[:])
	binary.LittleEndian.PutUint32(bytes[16:], h.size)
	binary.LittleEndian.PutUint64(bytes[20:], h.before)
	return bytes
}

func (e *events) header(place uint64) (h header) {
	var bytes [headerBytes]byte
	e.kept.read(place, bytes[:])
	copy(h.key[:], bytes[:])
	h.size, h.before = binary.LittleEndian.Uint32(bytes[16:]), binary.LittleEndian.Uint64(bytes[20:])
	return h
}

// answers reports that an event answers a request, after which its stream has no other.
func answers(event []byte) bool {
	for t := segjson.NewTokenizer(event); t.Next(); {
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
