// Package eventstore keeps the newest events of all sessions of an MCP server, so that a client
// whose stream breaks can resume it with Last-Event-ID. Store implements the event store of the Go
// SDK on a ring buffer of fixed size.
package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	minEventBytes = 256 // bounds the number of events, and so of streams
	sizeAt        = 16  // in a header, after the key
	previousAt    = sizeAt + 4
	headerBytes   = previousAt + 8
	tooLong       = math.MaxUint32 // replaces the size of an event that does not fit
	// Unanswered streams of a session; some are never answered, such as that of a request whose id
	// is in use.
	maxOpenStreams = 1000
)

// Store is an sdk.EventStore of the newest events of all sessions.
//
// The SDK's own store keeps a record of every call until its session ends, and drops the first
// event of every stream when it is full. Store drops the oldest events, and an answered stream with
// its last event. A batch has several answers in one stream; the later ones may be lost. Events are
// bytes of a ring and have no pointers: as values of Go they cost a call in a session an eighth of
// its CPU, for garbage collection.
type Store struct {
	ended func(session string)

	mu      sync.Mutex
	kept    ring // headers and events, the oldest first
	streams map[streamKey]streamState
	open    map[string][]streamKey // unanswered streams by session; the first, "", never has an answer
}

// streamKey is a hash of the ids of a session and a stream.
type streamKey [sizeAt]byte

type streamState struct {
	first, next int    // indexes of the first event that is kept, and of the one after the last
	written     int    // index after the last event that a client has got; only of the stream ""
	last        uint64 // position of the last event
	answered    bool
}

// New returns a store of that many bytes. It calls ended when the SDK reports that a session has
// ended.
func New(bytes int, ended func(session string)) *Store {
	return &Store{
		ended:   ended,
		kept:    newRing(bytes),
		streams: map[streamKey]streamState{},
		open:    map[string][]streamKey{},
	}
}

func keyOf(session, stream string) streamKey {
	var buffer [128]byte
	sum := sha256.Sum256(append(append(append(buffer[:0], session...), 0), stream...))
	return streamKey(sum[:])
}

// Open implements sdk.EventStore.
func (s *Store) Open(_ context.Context, session, stream string) error {
	key := keyOf(session, stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	open, live := s.open[session]
	// A request may come to a session that has just ended.
	if _, known := s.streams[key]; known || !live && stream != "" {
		return nil
	}
	if len(open) == maxOpenStreams {
		s.answered(open[1])
		open = slices.Delete(open, 1, 2)
	}
	s.streams[key], s.open[session] = streamState{}, append(open, key)
	return nil
}

// Append implements sdk.EventStore. It returns sdk.ErrEventsPurged when it does not keep the event;
// a client that reads the stream still gets it.
func (s *Store) Append(_ context.Context, session, stream string, event []byte) error {
	head := header{key: keyOf(session, stream), size: uint32(len(event))}
	answer := message.IsResponse(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if headerBytes+len(event) > s.kept.capacity() {
		head.size, event = tooLong, nil
	}
	if !s.makeRoom(head) {
		return sdk.ErrEventsPurged
	}
	p := s.streams[head.key]
	head.previous, p.last = p.last, s.kept.end
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

// makeRoom drops the oldest events, and reports whether the stream of the new event still exists
// then.
func (s *Store) makeRoom(h header) (known bool) {
	_, known = s.streams[h.key]
	for known && s.kept.room() < h.span() {
		s.dropOldest()
		_, known = s.streams[h.key]
	}
	return known
}

// answered marks a stream that gets no further events.
func (s *Store) answered(key streamKey) {
	p := s.streams[key]
	p.answered = true
	s.keep(key, p)
}

// keep stores the state of a stream, or deletes a stream that no client can resume any more.
func (s *Store) keep(key streamKey, p streamState) {
	if p.answered && p.first == p.next {
		delete(s.streams, key)
		return
	}
	s.streams[key] = p
}

func (s *Store) dropOldest() {
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
		s.kept, s.streams = newRing(s.kept.capacity()), map[streamKey]streamState{}
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
	index = max(index, -1)
	if !known || index+1 < p.first || index >= p.next {
		return nil, sdk.ErrEventsPurged
	}
	offset := p.last
	for range p.next - 1 - index {
		head := s.header(offset)
		if head.size == tooLong {
			return nil, sdk.ErrEventsPurged
		}
		event := make([]byte, head.size)
		s.kept.read(offset+headerBytes, event)
		missed, offset = append(missed, event), head.previous
	}
	slices.Reverse(missed)
	return missed, nil
}

// Seen returns the index after which the stream "" of a session continues for a client that sends
// no Last-Event-ID: that of the last event that a client has got, or that the store has not kept.
func (s *Store) Seen(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.streams[keyOf(session, "")]
	index, offset := p.next-1, p.last
	for ; index >= max(p.first, p.written); index-- {
		head := s.header(offset)
		if head.size == tooLong {
			break
		}
		offset = head.previous
	}
	return index
}

// streamID precedes the index in the id of an event of the stream "".
var streamID = []byte("\nid: _")

// Wrote records the last event of the stream "" in a text that was sent to a client, so that no
// client gets it again without a Last-Event-ID.
func (s *Store) Wrote(session string, events []byte) {
	at := bytes.LastIndex(events, streamID) // JSON in an event has no line ends
	if at < 0 {
		return
	}
	number, _, _ := bytes.Cut(events[at+len(streamID):], []byte("\n"))
	index, err := strconv.Atoi(string(number))
	if err != nil {
		return
	}
	key := keyOf(session, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.streams[key]; known {
		p.written = max(p.written, index+1)
		s.streams[key] = p
	}
}

// header precedes each event.
type header struct {
	key      streamKey
	size     uint32
	previous uint64 // position of the event before it in its stream
}

// span is the number of bytes of a header and its event.
func (h header) span() int {
	if h.size == tooLong {
		return minEventBytes
	}
	return max(minEventBytes, headerBytes+int(h.size))
}

func (h header) encode() (bytes [headerBytes]byte) {
	copy(bytes[:], h.key[:])
	binary.LittleEndian.PutUint32(bytes[sizeAt:], h.size)
	binary.LittleEndian.PutUint64(bytes[previousAt:], h.previous)
	return bytes
}

func (s *Store) header(place uint64) (h header) {
	var bytes [headerBytes]byte
	s.kept.read(place, bytes[:])
	copy(h.key[:], bytes[:])
	h.size, h.previous = binary.LittleEndian.Uint32(bytes[sizeAt:]), binary.LittleEndian.Uint64(bytes[previousAt:])
	return h
}
