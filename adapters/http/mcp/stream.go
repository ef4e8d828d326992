package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
)

const (
	eventStream = "text/event-stream"
	// writeTimeout frees a stream whose reader has gone silent. It is longer than a beat, which renews it: over HTTP/2 it ends idle streams too.
	writeTimeout = time.Minute
	// linger is how long what a call has brought waits for the end of its answer: one packet less is worth a timer. The end mostly comes at
	// once, but on a busy processor others have their turn before it.
	linger = 50 * time.Millisecond
	// buffered is how much of an answer the server keeps back until it is flushed or done; no reader can block what is not sent yet.
	buffered = 2 << 10
)

// Why an answer is cut.
var (
	errOver     = errors.New("the grant or the access token has ended")
	errDraining = errors.New("the service is shutting down")
	errEvicted  = errors.New("there were too many streams")
)

// stream is the ResponseWriter of one answer, and the context of its request. Nothing can be written once that has ended.
type stream struct {
	http.ResponseWriter
	*ending  // apart, because the SDK keeps it as long as a session that begins with this request
	control  http.ResponseController
	registry *registry
	noted    noted
	request  http.Request // here, because each piece would be an allocation of its own
	body     whole
	reserved jsonrpc.Reservation
	id       []byte // of the message that is answered; nil in a batch
	single   bool   // one request came, and its result is the last that is said
	long     bool   // what may be known of it elsewhere is asked of the registry
	opened   int    // guarded by the registry, like what follows
	beaten   int

	relayed bool // the answer of an upstream, which is passed on as it is

	mu      sync.Mutex       // also serializes the SDK's writes and the beat's
	begun   bool             // the answer has a status
	events  bool             // the first event was written, or the head of a relayed stream
	written int              // bytes
	unsent  int              // of them, since the last flush
	tail    [longestEnd]byte // of what was written
	refused int              // status of a refusal whose text the SDK has not written yet
	stopped bool
	limited bool // there is a deadline for writing
	listens bool // to the body
	late    bool // the body is, and there is a deadline for it
	beats   bool
	expiry  *time.Timer // of the access token; a long stream ends with it
	push    *time.Timer // sends what its end has not taken along
}

// over reports that the grant or the access token has ended since it was looked at.
func (s *stream) over() bool {
	expiry := s.who.caller.ExpiresAt
	return s.Err() != nil || !expiry.IsZero() && !s.registry.now().Before(expiry)
}

// begin sets what may last going. A long stream ends with its access token; a call that was allowed when it came may finish.
func (s *stream) begin(long bool) {
	s.outlast()
	if !long && !s.relayed {
		return
	}
	if long {
		s.registry.lasts(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if expiry := s.who.caller.ExpiresAt; long && !expiry.IsZero() {
		s.expiry = time.AfterFunc(expiry.Sub(s.registry.now()), func() { s.end(errOver) })
	}
	s.beats = true
}

// outlast removes the server's WriteTimeout, because an answer may take longer; each write sets its own deadline. An unread body gets a read
// deadline, because net/http waits for its end before it sends anything.
func (s *stream) outlast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.control.SetWriteDeadline(time.Time{}) // recorders in tests have no deadlines
	if s.isUnread() {
		_ = s.control.SetReadDeadline(time.Now().Add(bodyLimit))
	}
}

// beat is what happens again and again, as long as the answer lasts.
func (s *stream) beat() {
	if s.Err() != nil {
		return
	}
	if s.outlived() {
		s.end(errOver)
		return
	}
	s.comment()
}

// callLimit is how much longer than its access token an answer may take that is no long stream. Only an upstream answers a message
// with a stream that has no end.
const callLimit = 10 * time.Minute

// outlived reports that the answer goes on although what it was given for has ended, perhaps in another process.
func (s *stream) outlived() bool {
	expiry, long := s.who.caller.ExpiresAt, s.registry.isLong(s)
	if long || !s.relayed || expiry.IsZero() || s.registry.now().Before(expiry) {
		return (long || s.relayed) && s.registry.revoked(s)
	}
	return !s.registry.now().Before(expiry.Add(callLimit))
}

// lasting reports that the answer may go on for long, so that it ends with the token that it was asked for.
func (s *stream) lasting() bool { return s.long || s.relayed }

// ended says why nothing can be written any more.
func (s *stream) ended() error {
	if s.stopped {
		return context.Canceled
	}
	return s.Err()
}

// comment keeps proxies from closing an idle stream. Before the first event it would be an early 200.
func (s *stream) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.beats || s.ended() != nil {
		return
	}
	s.limit()
	if s.events && s.betweenEvents() {
		_, _ = s.ResponseWriter.Write([]byte(": keep-alive\n\n"))
		_ = s.control.Flush()
	}
}

// finish must come before the handler returns: afterwards the ResponseWriter is no longer ours. What is left to send is sent then; net/http takes
// the deadline for that away when it is done.
func (s *stream) finish() {
	s.registry.close(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused > 0 {
		s.ResponseWriter.WriteHeader(s.refused)
	}
	s.stopped = true
	if !s.late && s.isUnread() {
		_ = s.control.SetReadDeadline(time.Now().Add(bodyLimit)) // net/http waits for it before it answers
	}
	if !s.limited {
		s.limit()
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	if s.push != nil {
		s.push.Stop()
	}
	s.release()
	s.reserved.Release()
	s.noted.walk.End()
}

// unanswered returns why an answer was cut before it began, nil when it did begin or nobody waits for it.
func (s *stream) unanswered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.Context.Err() != nil {
		return nil
	}
	return context.Cause(s)
}

// isAwaited reports that the client waits for an answer that has no status yet.
func (s *stream) isAwaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.begun && s.ended() == nil
}

// WriteHeader tells proxies not to buffer events. It holds a refusal in plain text back until Write has its words.
func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	if status >= http.StatusBadRequest && !s.relayed && strings.HasPrefix(s.Header().Get("Content-Type"), "text/plain") {
		s.refused = status
		return
	}
	s.events = s.unbuffer() && s.relayed
	s.ResponseWriter.WriteHeader(status)
}

// Write fails once the stream has ended (G16). A refusal becomes a JSON-RPC error, in which input can only be a quoted string.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(); err != nil {
		return 0, fmt.Errorf("writing to an ended stream: %w", err)
	}
	s.begun = true
	if status := s.refused; status > 0 {
		s.refused = 0
		jsonrpc.WriteErrorFor(s.ResponseWriter, status, s.id, rpc.CodeInvalidRequest, strings.TrimSpace(string(p)))
		return len(p), nil
	}
	if s.events = s.unbuffer(); s.events {
		s.remember(p)
	}
	s.unsent += len(p)
	if s.written += len(p); s.written > buffered || s.events || s.long || s.limited {
		s.limit()
	}
	return s.ResponseWriter.Write(p)
}

// longestEnd is the length of the longest end that an event can have.
const longestEnd = len("\r\n\r\n")

// remember keeps the last bytes, because what an upstream or another replica sends may be cut anywhere.
func (s *stream) remember(p []byte) {
	p = p[max(0, len(p)-longestEnd):]
	copy(s.tail[:], s.tail[len(p):])
	copy(s.tail[longestEnd-len(p):], p)
}

// betweenEvents reports whether a comment would stand by itself.
func (s *stream) betweenEvents() bool {
	tail := string(s.tail[:])
	return s.tail == [longestEnd]byte{} || tail == "\r\n\r\n" || strings.HasSuffix(tail, "\n\n") || strings.HasSuffix(tail, "\r\r")
}

// FlushError is what http.ResponseController calls.
func (s *stream) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(); err != nil {
		return fmt.Errorf("flushing an ended stream: %w", err)
	}
	s.beats = true // more is to come
	if s.single && s.who.served.Load() && !s.long && s.unsent <= buffered {
		if s.push == nil {
			s.push = time.AfterFunc(s.registry.linger, s.send)
		}
		return nil
	}
	return s.flush()
}

// send is for an answer that goes on all the same.
func (s *stream) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.push = nil; s.ended() == nil {
		_ = s.flush() // whoever writes next is told
	}
}

func (s *stream) flush() error {
	s.unsent = 0
	s.limit()
	return s.control.Flush()
}

// unbuffer reports whether this is a stream of events. Setting the header again is harmless.
func (s *stream) unbuffer() bool {
	if !strings.HasPrefix(strings.ToLower(s.Header().Get("Content-Type")), eventStream) {
		return false
	}
	s.Header().Set("X-Accel-Buffering", "no")
	return true
}

func (s *stream) limit() {
	s.limited = true
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // recorders in tests have no deadlines
}
