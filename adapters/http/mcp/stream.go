package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	eventStream = "text/event-stream"
	// writeTimeout frees a stream whose reader has gone silent, and replaces a WriteTimeout of the server, which would cut
	// every stream. It is longer than a beat, which renews it: over HTTP/2 it ends idle streams too.
	writeTimeout = time.Minute
)

// stream is the ResponseWriter of one answer. Nothing can be written once its context has ended.
type stream struct {
	http.ResponseWriter
	control  *http.ResponseController
	registry *registry
	who      *identity
	long     bool
	ctx      context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex // also serializes the SDK's writes and the beat's
	events  bool       // the first event was written
	refused int        // status of a refusal whose text the SDK has not written yet
	stopped bool
	beat    *time.Timer
	end     *time.Timer // of the access token; a long stream ends with it
}

// over reports that the grant or the access token has ended since it was looked at.
func (s *stream) over() bool {
	expiry := s.who.caller.ExpiresAt
	return s.ctx.Err() != nil || !expiry.IsZero() && !s.registry.now().Before(expiry)
}

// begin sets the beat. Timers instead of goroutines: an idle stream costs next to nothing. A long stream ends with its access
// token; a call that was allowed when it came may finish.
func (s *stream) begin(long bool) {
	if long {
		s.registry.lasts(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if expiry := s.who.caller.ExpiresAt; long && !expiry.IsZero() {
		s.end = time.AfterFunc(expiry.Sub(s.registry.now()), s.cancel)
	}
	every := s.registry.interval
	s.beat = time.AfterFunc(every, func() {
		if s.long && s.registry.revoked(s) {
			s.cancel()
			return
		}
		s.comment(every)
	})
}

// comment keeps proxies from closing an idle stream. Before the first event it would be an early 200.
func (s *stream) comment(next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.ctx.Err() != nil {
		return
	}
	s.beat.Reset(next)
	if s.events {
		s.limit()
		_, _ = s.ResponseWriter.Write([]byte(": keep-alive\n\n"))
		_ = s.control.Flush()
	}
}

// finish must come before the handler returns: afterwards the ResponseWriter is no longer ours.
func (s *stream) finish() {
	s.registry.close(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused > 0 {
		s.ResponseWriter.WriteHeader(s.refused)
	}
	s.stopped = true
	for _, timer := range []*time.Timer{s.beat, s.end} {
		if timer != nil {
			timer.Stop()
		}
	}
	s.cancel()
}

// WriteHeader tells proxies not to buffer events. It holds a refusal in plain text back until Write has its words.
func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status >= http.StatusBadRequest && strings.HasPrefix(s.Header().Get("Content-Type"), "text/plain") {
		s.refused = status
		return
	}
	s.unbuffer()
	s.ResponseWriter.WriteHeader(status)
}

// Write fails once the stream has ended (G16). A refusal becomes a JSON-RPC error, in which input can only be a quoted string.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return 0, fmt.Errorf("writing to an ended stream: %w", err)
	}
	if status := s.refused; status > 0 {
		s.refused = 0
		rpcError(s.ResponseWriter, status, strings.TrimSpace(string(p)))
		return len(p), nil
	}
	s.events = s.unbuffer()
	s.limit()
	return s.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (s *stream) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("flushing an ended stream: %w", err)
	}
	return s.control.Flush()
}

// unbuffer reports whether this is a stream of events. Setting the header again is harmless.
func (s *stream) unbuffer() bool {
	if !strings.HasPrefix(s.Header().Get("Content-Type"), eventStream) {
		return false
	}
	s.Header().Set("X-Accel-Buffering", "no")
	return true
}

func (s *stream) limit() {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // recorders in tests have no deadlines
}
