package response

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	// writeTimeout ends a stream whose client does not read. It is longer than keepAliveInterval,
	// because over HTTP/2 it ends idle streams too.
	writeTimeout = time.Minute
	// buffered is the number of bytes that net/http keeps until a flush or the end. A slow client
	// cannot block them.
	buffered = 2 << 10
)

// The causes of an early end of a response.
var (
	ErrEnded    = errors.New("the grant or the access token has ended")
	ErrDraining = errors.New("the service is shutting down")
	ErrEvicted  = errors.New("there were too many streams")
)

// Writer is the http.ResponseWriter of one response, with the context of its request. Writes fail
// after that context has ended.
type Writer struct {
	http.ResponseWriter
	// A separate allocation, because the SDK keeps it as long as a session that begins with this
	// request.
	ctx      *responseContext
	control  *http.ResponseController
	registry *Registry
	traced   tracedWriter
	request  *http.Request
	hasBody  bool // that was read
	reserved message.Reservation
	id       message.ID // of the only call in the body
	relayed  bool       // the response of an upstream, which is passed on unchanged
	observe  func(header http.Header, p []byte)

	long bool // a stream; guarded by the mutex of the registry

	mu           sync.Mutex // guards what follows, and serializes writes of the SDK and of comment
	begun        bool       // it has a status
	events       bool       // it is a stream of events, whose header or first event was written
	written      int        // bytes
	tail         [longestSeparator]byte
	refused      int  // status of a refusal whose text the SDK has not written yet
	stopped      bool // by Finish
	aborted      bool
	limited      bool // it has a write deadline
	readingBody  bool
	bodyExpired  bool // it has a read deadline
	sendComments bool
	keepAlive    *time.Timer // calls refresh; nil before Identify
	bodyTimer    *time.Timer // calls expireBody
	expiry       *time.Timer // ends a stream with its access token
}

// Context returns the context of the request, which ends with the response. It may be kept longer
// than the response.
func (w *Writer) Context() context.Context { return w.ctx }

// End ends the response and its context with a cause.
func (w *Writer) End(cause error) { w.ctx.end(cause) }

// Identity returns the identity of the caller, nil before Identify.
func (w *Writer) Identity() *Identity { return w.ctx.identity }

// IsRelayed reports whether the response comes from an upstream.
func (w *Writer) IsRelayed() bool { return w.relayed }

// Identify sets the caller. From now on the response ends with the caller's grant.
func (w *Writer) Identify(identity *Identity) { w.registry.add(w, identity) }

// Observe calls observe with each part of the body before it is sent. Call it before the response
// begins.
func (w *Writer) Observe(observe func(header http.Header, p []byte)) { w.observe = observe }

// Status returns the status of the response, 0 before it has one.
func (w *Writer) Status() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused > 0 {
		return w.refused
	}
	return w.traced.status
}

// ReadBody reads the body of the request, and reserves memory for it until Finish. It fails if the
// client takes longer than BodyLimit.
func (w *Writer) ReadBody(limit int64, memory *message.BodyMemory) ([]byte, error) {
	w.beginBody()
	w.reserved = memory.Reserve(w.ctx.identity.Caller.Subject)
	body, err := message.ReadBody(w.request, limit, &w.reserved)
	w.endBody(err)
	if err == nil {
		w.hasBody = true
		w.request.Body = io.NopCloser(bytes.NewReader(body))
	}
	return body, err
}

// HasEnded reports whether the grant or the access token has ended since Identify.
func (w *Writer) HasEnded() bool {
	expiry := w.ctx.identity.Caller.ExpiresAt
	return w.ctx.Err() != nil || !expiry.IsZero() && !w.registry.options.Now().Before(expiry)
}

// Begin starts keep-alive comments. A long stream ends with its access token; a call that began
// with a valid token may finish.
func (w *Writer) Begin(id message.ID, long bool) {
	w.id = id
	w.extendDeadlines()
	if !long && !w.relayed {
		return
	}
	if long {
		w.registry.markLong(w)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if expiry := w.ctx.identity.Caller.ExpiresAt; long && !expiry.IsZero() {
		w.expiry = time.AfterFunc(expiry.Sub(w.registry.options.Now()), func() { w.End(ErrEnded) })
	}
	w.sendComments = true
}

// LimitStream counts a stream of a gateway, and ends the oldest one when there are too many. A
// gateway counts streams, because the upstream has the sessions.
func (w *Writer) LimitStream() {
	r := w.registry
	r.mu.Lock()
	evicted, evicts := r.relayed.Add(w, w.ctx.identity.Caller.Subject)
	r.mu.Unlock()
	if evicts {
		evicted.End(ErrEvicted)
		r.reportEviction("stream", r.options.StreamLimits, []string{evicted.ctx.identity.Caller.Grant})
	}
}

// extendDeadlines removes the server's WriteTimeout, because a response may take longer; each write
// sets its own deadline. An unread body gets a read deadline, because net/http waits for its end
// before it sends anything.
func (w *Writer) extendDeadlines() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.control.SetWriteDeadline(time.Time{}) // recorders in tests have no deadlines
	if w.isUnread() {
		_ = w.control.SetReadDeadline(time.Now().Add(w.registry.BodyLimit))
	}
}

// refresh ends a response without authorization and sends a keep-alive comment in any other. It is
// called at intervals.
func (w *Writer) refresh() {
	if w.ctx.Err() != nil {
		return
	}
	if w.isUnauthorized() {
		w.End(ErrEnded)
		return
	}
	w.comment()
}

// callLimit is how much longer than its access token a call may take. It is for an upstream, which
// may answer a call with an endless stream.
const callLimit = 10 * time.Minute

// isUnauthorized reports whether the access token was revoked, perhaps in another process, or the
// call has exceeded callLimit.
func (w *Writer) isUnauthorized() bool {
	expiry, long := w.ctx.identity.Caller.ExpiresAt, w.registry.isLong(w)
	if long || !w.relayed || expiry.IsZero() || w.registry.options.Now().Before(expiry) {
		return (long || w.relayed) && w.registry.isRevoked(w)
	}
	return !w.registry.options.Now().Before(expiry.Add(callLimit))
}

// endsWithToken reports whether the response ends when its access token is revoked, because it may
// take long.
func (w *Writer) endsWithToken() bool { return w.long || w.relayed }

// ended returns the error of writes after the end of the response, nil before.
func (w *Writer) ended() error {
	if w.stopped {
		return context.Canceled
	}
	return w.ctx.Err()
}

// comment sends a keep-alive comment, but not before the header: it would be an early 200.
func (w *Writer) comment() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended() != nil {
		return
	}
	w.keepAlive.Reset(w.registry.KeepAlive)
	if !w.sendComments {
		return
	}
	w.setWriteDeadline()
	if w.takesComment() {
		_, _ = w.ResponseWriter.Write([]byte(": keep-alive\n\n"))
		_ = w.control.Flush()
	}
}

// Finish must be called before the handler returns. It sets the write deadline within which
// net/http sends the rest of the response.
func (w *Writer) Finish() {
	w.registry.remove(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused > 0 {
		w.ResponseWriter.WriteHeader(w.refused)
	}
	w.stopped = true
	if !w.bodyExpired && w.isUnread() {
		_ = w.control.SetReadDeadline(time.Now().Add(w.registry.BodyLimit)) // net/http reads it before it answers
	}
	if !w.limited {
		w.setWriteDeadline()
	}
	for _, timer := range []*time.Timer{w.keepAlive, w.expiry} {
		if timer != nil {
			timer.Stop()
		}
	}
	w.ctx.end(nil)
	w.reserved.Release()
	w.traced.recorder.End()
}

// Unanswered returns the cause of a response that ended before it began. It returns nil if the
// response has begun or the client has gone.
func (w *Writer) Unanswered() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun || w.ctx.client.Err() != nil {
		return nil
	}
	return context.Cause(w.ctx)
}

// IsAwaited reports whether the client waits for a response that has no status yet.
func (w *Writer) IsAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.begun && w.ended() == nil
}

// Abort ends the connection, so that the client does not take an incomplete response for a complete
// one. It does not return.
func (w *Writer) Abort() {
	w.mu.Lock()
	w.aborted = true
	w.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// IsAborted reports whether the response is incomplete.
func (w *Writer) IsAborted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.aborted
}
