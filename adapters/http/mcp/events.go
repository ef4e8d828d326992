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
	keptEvents  = 10 << 20 // bytes of all sessions
	leastSpan   = 256      // bytes that an event takes at least, so that there are never many more streams than can be looked after
	sizeAt      = 16       // in a header, behind the key
	beforeAt    = sizeAt + 4
	headerBytes = beforeAt + 8
	tooLong     = math.MaxUint32 // instead of the size of an event that does not fit
	openStreams = 1000           // of a session that are not answered: some never are, as of a request whose id is in use
)

// events lets clients read on where a stream broke off: an sdk.EventStore of the newest events. It is also where the SDK says that a
// session has ended: a goroutine that waits for it would cost as much as the session.
//
// The SDK's own keeps something of every call until its session ends, and drops the first event of all streams when it is full. This one
// forgets what is oldest, and a stream that was answered with the last of its events; so of a batch, whose stream has several answers, the
// later ones may be lost. Nothing of an event is a pointer, which garbage collection would follow at every turn.
type events struct {
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
	open, live := e.open[session]
	if _, known := e.streams[key]; known || !live && stream != "" { // a request may come to a session that has just ended
		return nil
	}
	if len(open) == openStreams {
		e.answered(open[1])
		open = slices.Delete(open, 1, 2)
	}
	e.streams[key], e.open[session] = progress{}, append(open, key)
	return nil
}

// Append implements sdk.EventStore. It returns sdk.ErrEventsPurged when the event is not kept; whoever reads the stream gets it all the same.
func (e *events) Append(_ context.Context, session, stream string, event []byte) error {
	head := header{key: keyOf(session, stream), size: uint32(len(event))}
	answer := answers(event)
	e.mu.Lock()
	defer e.mu.Unlock()
	if headerBytes+len(event) > e.kept.capacity() {
		head.size, event = tooLong, nil
	}
	if !e.makeRoom(head) {
		return sdk.ErrEventsPurged
	}
	p := e.streams[head.key]
	head.before, p.last = p.last, e.kept.end
	p.next++
	p.answered = p.answered || answer
	e.streams[head.key] = p
	bytes := head.encode()
	e.kept.write(bytes[:])
	e.kept.write(event)
	e.kept.end = p.last + uint64(head.span())
	if open, live := e.open[session]; live && answer {
		e.open[session] = slices.DeleteFunc(open, func(k streamKey) bool { return k == head.key })
	}
	if head.size == tooLong {
		return sdk.ErrEventsPurged
	}
	return nil
}

// makeRoom forgets what is oldest, and reports that the stream of the event is not forgotten by then.
func (e *events) makeRoom(h header) (known bool) {
	_, known = e.streams[h.key]
	for known && e.kept.room() < h.span() {
		e.forgetOldest()
		_, known = e.streams[h.key]
	}
	return known
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
	e.kept.begin += uint64(head.span())
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
	if len(e.open) == 0 { // nobody can ask for anything any more
		e.kept, e.streams = newRing(e.kept.capacity()), map[streamKey]progress{}
	}
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
	e.streams[key] = p
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

func (e *events) header(place uint64) (h header) {
	var bytes [headerBytes]byte
	e.kept.read(place, bytes[:])
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
