package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/attempt"
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
	http.ResponseWriter // a *tracedWriter
	// A separate allocation, because the SDK keeps the context as long as a session that begins
	// with this request.
	ctx      *responseContext
	control  *http.ResponseController
	registry *Registry
	request  *http.Request
	id       message.ID // of the only call in the body
	observe  func(header http.Header, p []byte)

	bodyLimited bool // limitBody has set the deadline
	memory      message.Reservation

	long bool // a stream; guarded by the mutex of the registry

	mu    sync.Mutex  // guards what follows, and serializes writes of the SDK and of comment
	timer *time.Timer // calls refresh; nil before Identify
	// isEvents reports whether the response has begun as a stream of events that is neither
	// compressed nor of a fixed length.
	isEvents bool
	tail     [longestSeparator]byte // the last bytes that were sent
	refused  int                    // status of a refusal whose text the SDK has not written yet
	stopped  bool                   // by Finish
	aborted  bool
}

// Context returns the context of the request, which ends with the response. It may be kept longer
// than the response.
func (w *Writer) Context() context.Context { return w.ctx }

// End ends the response and its context with a cause.
func (w *Writer) End(cause error) { w.ctx.end(cause) }

// Identity returns the identity of the caller, nil before Identify.
func (w *Writer) Identity() *Identity { return w.ctx.identity }

// IsRelayed reports whether the response comes from an upstream, which is passed on unchanged.
func (w *Writer) IsRelayed() bool { return w.registry.options.Relays }

// Identify sets the caller. From now on the response ends with the caller's grant.
func (w *Writer) Identify(identity *Identity) {
	w.ctx.identity = identity
	r := w.registry
	r.mu.Lock()
	r.responses[w] = struct{}{}
	r.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(r.KeepAlive, w.refresh)
}

// Observe calls observe with each part of the body before it is sent. Call it before the response
// begins.
func (w *Writer) Observe(observe func(header http.Header, p []byte)) { w.observe = observe }

// ReadBody reads the body of the request, and reserves memory for it until Finish. It fails if the
// client takes longer than BodyLimit.
func (w *Writer) ReadBody(limit int64, memory *message.BodyMemory) ([]byte, error) {
	w.limitBody()
	w.memory = memory.Reserve(w.ctx.identity.Caller.Subject)
	body, err := message.ReadBody(w.request, limit, &w.memory)
	if err == nil {
		_ = w.control.SetReadDeadline(time.Time{})
		w.request.Body = io.NopCloser(bytes.NewReader(body))
	}
	return body, err
}

// limitBody sets the deadline of a body, once. An unread body needs one too, because net/http waits
// for the end of the body before it sends anything.
func (w *Writer) limitBody() {
	if body := w.request.Body; w.bodyLimited || body == nil || body == http.NoBody {
		return
	}
	w.bodyLimited = true
	_ = w.control.SetReadDeadline(time.Now().Add(w.registry.BodyLimit)) // recorders in tests have no deadlines
}

// HasEnded reports whether the grant or the access token has ended since Identify.
func (w *Writer) HasEnded() bool { return w.ctx.Err() != nil || w.isExpired(0) }

// isExpired reports whether the access token expired at least that long ago.
func (w *Writer) isExpired(ago time.Duration) bool {
	expiry := w.ctx.identity.Caller.ExpiresAt
	return !expiry.IsZero() && !w.registry.options.Now().Before(expiry.Add(ago))
}

// Begin removes the server's WriteTimeout, because a response may take longer; each write has its
// own limit. A long stream ends with its access token; a call that began with a valid token may
// finish.
func (w *Writer) Begin(id message.ID, long bool) {
	w.id = id
	w.limitBody()
	if r := w.registry; long {
		r.mu.Lock()
		w.long = true
		if r.draining {
			w.End(ErrDraining)
		}
		r.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.control.SetWriteDeadline(time.Time{})
	w.timer.Reset(w.interval(long))
}

// interval is the time until the next refresh.
func (w *Writer) interval(long bool) time.Duration {
	if expiry := w.ctx.identity.Caller.ExpiresAt; long && !expiry.IsZero() {
		return max(0, min(w.registry.KeepAlive, expiry.Sub(w.registry.options.Now())))
	}
	return w.registry.KeepAlive
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

// refresh ends a response without authorization and sends a keep-alive comment in any other. The
// timer calls it.
func (w *Writer) refresh() {
	if w.ctx.Err() != nil {
		return
	}
	w.registry.mu.Lock()
	long := w.long
	w.registry.mu.Unlock()
	if w.isUnauthorized(long) {
		w.End(ErrEnded)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended() != nil {
		return
	}
	w.timer.Reset(w.interval(long))
	if w.takesComment() {
		_ = w.flush([]byte(": keep-alive\n\n"))
	}
}

// callLimit is how much longer than its access token a call may take. It is for an upstream, which
// may answer a call with an endless stream.
const callLimit = 10 * time.Minute

// isUnauthorized reports whether the response has to end: a stream whose access token has expired
// or was revoked, perhaps in another process, or a call to an upstream whose token was revoked, or
// expired callLimit ago.
func (w *Writer) isUnauthorized(long bool) bool {
	switch {
	case long:
		return w.isExpired(0) || w.registry.isRevoked(w)
	case !w.IsRelayed():
		return false
	case w.isExpired(0): // isRevoked would be true
		return w.isExpired(callLimit)
	}
	return w.registry.isRevoked(w)
}

// ended returns the error of writes after the end of the response, nil before.
func (w *Writer) ended() error {
	if w.stopped {
		return context.Canceled
	}
	return w.ctx.Err()
}

// WriteHeader tells proxies not to buffer events. It delays a refusal in plain text until Write has
// its text.
func (w *Writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status >= http.StatusBadRequest && !w.IsRelayed() &&
		strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = status
		return
	}
	w.disableBuffering()
	w.ResponseWriter.WriteHeader(status)
}

// Write fails after the response has ended. It converts a refusal in plain text to a JSON-RPC
// error, which escapes the data of the request in the text.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ended(); err != nil {
		return 0, fmt.Errorf("writing to an ended stream: %w", err)
	}
	if status := w.refused; status > 0 {
		w.refused = 0
		message.WriteErrorFor(w.ResponseWriter, status, w.id, sdk.CodeInvalidRequest, strings.TrimSpace(string(p)))
		return len(p), nil
	}
	if w.disableBuffering() {
		w.keepTail(p)
	}
	if w.observe != nil {
		w.observe(w.Header(), p)
	}
	return w.write(p)
}

// writeSize is how many bytes a client has to read within WriteLimit. A slow client may read for
// long; one that does not read delays the other responses of its session by the limit.
const writeSize = 64 << 10

func (w *Writer) write(p []byte) (written int, err error) {
	defer w.unlimit()
	for err == nil {
		w.limit()
		var n int
		n, err = w.ResponseWriter.Write(p[written:min(len(p), written+writeSize)])
		if written += n; written == len(p) {
			break
		}
	}
	if err != nil {
		w.End(err)
	}
	return written, err
}

// flush writes an event or comment, if any, and sends what net/http has buffered.
func (w *Writer) flush(event []byte) error {
	w.limit()
	defer w.unlimit()
	if len(event) > 0 {
		w.keepTail(event)
		_, _ = w.ResponseWriter.Write(event) // if it fails, the flush fails too
	}
	err := w.control.Flush()
	if err != nil {
		w.End(err)
	}
	return err
}

func (w *Writer) limit() { _ = w.control.SetWriteDeadline(time.Now().Add(w.registry.WriteLimit)) }

// unlimit removes the deadline, which would end an idle stream over HTTP/2.
func (w *Writer) unlimit() { _ = w.control.SetWriteDeadline(time.Time{}) }

// FlushError is called by http.ResponseController. A stream without a first event gets the opening
// comment.
func (w *Writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ended(); err != nil {
		return fmt.Errorf("flushing an ended stream: %w", err)
	}
	if w.long && w.isFresh() && w.takesComment() {
		return w.flush(message.OpeningComment)
	}
	return w.flush(nil)
}

// longestSeparator is the length of the longest separator of events.
const longestSeparator = len("\r\n\r\n")

// keepTail keeps the last bytes, because an upstream or another replica may send events in pieces.
func (w *Writer) keepTail(p []byte) {
	p = p[max(0, len(p)-longestSeparator):]
	copy(w.tail[:], w.tail[len(p):])
	copy(w.tail[longestSeparator-len(p):], p)
}

func (w *Writer) isFresh() bool { return w.tail == [longestSeparator]byte{} }

// takesComment reports whether a comment can be sent now: only between events, and not before the
// header, because the comment would be an early 200.
func (w *Writer) takesComment() bool {
	tail := string(w.tail[:])
	return w.isEvents && (w.isFresh() || tail == "\r\n\r\n" || strings.HasSuffix(tail, "\n\n") ||
		strings.HasSuffix(tail, "\r\r"))
}

// disableBuffering reports whether the response is a stream of events, and tells nginx not to
// buffer it.
func (w *Writer) disableBuffering() bool {
	header := w.Header() // only the handler may use it, so the timer reads isEvents
	if !message.IsEventStream(header) {
		return false
	}
	header.Set("X-Accel-Buffering", "no")
	w.isEvents = header.Get("Content-Encoding") == "" && header.Get("Content-Length") == ""
	return true
}

// Finish must be called before the handler returns. It limits how long net/http then waits for the
// rest of the request and takes to send the rest of the response.
func (w *Writer) Finish() {
	r := w.registry
	r.mu.Lock()
	delete(r.responses, w)
	r.relayed.Remove(w)
	r.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused > 0 {
		w.ResponseWriter.WriteHeader(w.refused)
	}
	w.stopped = true
	w.limitBody()
	w.limit()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.ctx.end(nil)
	w.memory.Release()
	attempt.From(w.ctx).End()
}

// Status returns the status of the response, 0 before it has one.
func (w *Writer) Status() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status()
}

func (w *Writer) status() int {
	if w.refused > 0 {
		return w.refused
	}
	return w.ResponseWriter.(*tracedWriter).status
}

// Unanswered returns the cause of a response that ended before it began. It returns nil if the
// response has begun or the client has gone.
func (w *Writer) Unanswered() error {
	if w.Status() > 0 || w.ctx.client.Err() != nil {
		return nil
	}
	return context.Cause(w.ctx)
}

// IsAwaited reports whether the client waits for a response that has no status yet.
func (w *Writer) IsAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status() == 0 && w.ended() == nil
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
