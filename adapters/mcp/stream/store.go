package stream

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	// eventCost is what an event counts besides its bytes. It bounds the number of events, and so
	// of streams.
	eventCost = 256
	// maxOpenStreams is the number of unanswered streams of a session. Some are never answered,
	// such as that of a request whose id is in use.
	maxOpenStreams = 1000
)

// StoreSize is the size of a store for all sessions of an MCP server.
const StoreSize = 10 << 20

// Store is an sdk.EventStore of the newest events of all sessions.
//
// The SDK's own store keeps a record of every call until its session ends, and drops the first
// event of every stream when it is full. Store drops the oldest events, and an answered stream with
// its last event. A batch has several answers in one stream; the later ones may be lost.
type Store struct {
	limit int // bytes
	ended func(session string)

	mu      sync.Mutex
	bytes   int
	order   []*stream // of each event, the oldest first
	streams map[streamKey]*stream
	open    map[string][]streamKey // unanswered streams by session; the first, "", never has an answer
}

type streamKey struct{ session, stream string }

type stream struct {
	key      streamKey
	first    int // index of the first event that is kept
	events   []event
	written  int // index after the last event that a client has got; only of the stream ""
	answered bool
}

type event struct {
	text []byte
	lost bool // it was too long to keep
}

func (e event) size() int { return eventCost + len(e.text) }

func (s *stream) next() int { return s.first + len(s.events) }

// NewStore returns a store of limit bytes. It calls ended when the SDK reports a session's end.
func NewStore(limit int, ended func(session string)) *Store {
	return &Store{
		limit:   limit,
		ended:   ended,
		streams: map[streamKey]*stream{},
		open:    map[string][]streamKey{},
	}
}

// Open implements sdk.EventStore. The stream "" begins a session. Open ignores any other stream
// without a session, because the session has just ended.
func (s *Store) Open(_ context.Context, session, id string) error {
	key := streamKey{session, id}
	s.mu.Lock()
	defer s.mu.Unlock()
	open, live := s.open[session]
	if _, known := s.streams[key]; known || !live && id != "" {
		return nil
	}
	if len(open) == maxOpenStreams {
		s.endStream(open[1]) // the oldest but the stream ""
		open = slices.Delete(open, 1, 2)
	}
	s.streams[key], s.open[session] = &stream{key: key}, append(open, key)
	return nil
}

// Append implements sdk.EventStore. It returns sdk.ErrEventsPurged when it does not keep the event;
// a client that reads the stream still gets it.
func (s *Store) Append(_ context.Context, session, id string, text []byte) error {
	key, e, answer := streamKey{session, id}, event{text: text}, message.IsResponse(text)
	if e.size() > s.limit {
		e = event{lost: true}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.streams[key]
	for to != nil && s.bytes+e.size() > s.limit {
		oldest := s.order[0]
		s.order[0], s.order = nil, s.order[1:]
		s.bytes -= oldest.events[0].size()
		oldest.events[0] = event{} // frees its text
		oldest.events, oldest.first = oldest.events[1:], oldest.first+1
		s.forget(oldest)
		to = s.streams[key] // which forget may have deleted
	}
	if to == nil {
		return sdk.ErrEventsPurged
	}
	to.events, to.answered = append(to.events, e), to.answered || answer
	s.order, s.bytes = append(s.order, to), s.bytes+e.size()
	if open, live := s.open[session]; live && answer {
		s.open[session] = slices.DeleteFunc(open, func(k streamKey) bool { return k == key })
	}
	if e.lost {
		return sdk.ErrEventsPurged
	}
	return nil
}

// endStream marks a stream that gets no further events.
func (s *Store) endStream(key streamKey) {
	if kept := s.streams[key]; kept != nil {
		kept.answered = true
		s.forget(kept)
	}
}

// forget deletes a stream that no client can resume any more.
func (s *Store) forget(old *stream) {
	if old.answered && len(old.events) == 0 {
		delete(s.streams, old.key)
	}
}

// SessionClosed implements sdk.EventStore.
func (s *Store) SessionClosed(_ context.Context, session string) error {
	s.ended(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.open[session] {
		s.endStream(key)
	}
	delete(s.open, session)
	if len(s.open) == 0 { // no session can resume
		s.bytes, s.order, s.streams = 0, nil, map[streamKey]*stream{}
	}
	return nil
}

// After implements sdk.EventStore.
func (s *Store) After(_ context.Context, session, id string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		missed, err := s.after(streamKey{session, id}, max(index, -1))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range missed {
			if !yield(e.text, nil) {
				return
			}
		}
	}
}

func (s *Store) after(key streamKey, index int) ([]event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.streams[key]
	if kept == nil || index+1 < kept.first || index >= kept.next() {
		return nil, sdk.ErrEventsPurged
	}
	missed := slices.Clone(kept.events[index+1-kept.first:])
	if slices.ContainsFunc(missed, func(e event) bool { return e.lost }) {
		return nil, sdk.ErrEventsPurged
	}
	return missed, nil
}

// Seen returns the index after which the stream "" of a session continues for a client that sends
// no Last-Event-ID: that of the last event that a client has got or that the store does not have.
func (s *Store) Seen(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.streams[streamKey{session, ""}]
	if kept == nil {
		return -1
	}
	index := kept.next() - 1
	for index >= max(kept.first, kept.written) && !kept.events[index-kept.first].lost {
		index--
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.streams[streamKey{session, ""}]; kept != nil {
		kept.written = max(kept.written, index+1)
	}
}
