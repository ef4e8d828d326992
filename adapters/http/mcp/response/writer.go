package response

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// EventStream is the media type of a stream.
	EventStream = "text/event-stream"
	// writeTimeout frees a stream whose reader has gone silent. It is longer than a beat, which renews it: over HTTP/2 it ends idle streams too.
	writeTimeout = time.Minute
	// linger is how long what a call has brought waits for the end of its answer: one packet less is worth a timer. The end mostly comes at
	// once, but on a busy processor others have their turn before it.
	linger = 50 * time.Millisecond
	// buffered is how much of an answer the server keeps back until it is flushed or done; a slow reader cannot block bytes that are not sent yet.
	buffered = 2 << 10
)

// Why an answer is cut.
var (
	ErrEnded    = errors.New("the grant or the access token has ended")
	ErrDraining = errors.New("the service is shutting down")
	ErrEvicted  = errors.New("there were too many streams")
)

// Writer is the ResponseWriter of one answer, and the context of its request. Nothing can be written once that has ended.
type Writer struct {
	http.ResponseWriter
	ctx      *endableContext // apart, because the SDK keeps it as long as a session that begins with this request
	control  http.ResponseController
	set      *OpenSet
	traced   tracedWriter
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

// Context is that of the request until the response ends, and may be kept for longer than the response.
func (w *Writer) Context() context.Context { return w.ctx }

// End ends the response and its context with a cause.
func (w *Writer) End(cause error) { w.ctx.end(cause) }

// Identity is that of the caller, nil until Identify.
func (w *Writer) Identity() *Identity { return w.ctx.who }

// Identify ties the response to the grant that it is given for, so that it ends with that grant.
func (w *Writer) Identify(token string, caller oauth.Caller, host oauth.HostToken) {
	who := &w.ctx.known
	who.Token, who.Resource, who.Caller, who.Host = token, w.set.options.Resource, caller, host
	w.set.open(w, who)
}

// ReadBody reads the body of the request, which takes memory until Finish. A client that stalls in it gets a read deadline.
func (w *Writer) ReadBody(limit int64, memory *jsonrpc.BodyMemory) ([]byte, error) {
	w.listen()
	w.reserved = memory.Reserve(w.ctx.who.Caller.Subject)
	body, err := jsonrpc.ReadBody(&w.request, limit, &w.reserved)
	w.heard(err)
	if err == nil {
		w.body = whole{*bytes.NewReader(body)}
		w.request.Body = &w.body
	}
	return body, err
}

// HasEnded reports that the grant or the access token has ended since it was looked at.
func (w *Writer) HasEnded() bool {
	expiry := w.ctx.who.Caller.ExpiresAt
	return w.ctx.Err() != nil || !expiry.IsZero() && !w.set.options.Now().Before(expiry)
}

// Begin sets what may last going. A long stream ends with its access token; a call that was allowed when it came may finish.
func (w *Writer) Begin(id []byte, long bool) {
	w.id, w.single = id, id != nil
	w.outlast()
	if !long && !w.relayed {
		return
	}
	if long {
		w.set.lasts(w)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if expiry := w.ctx.who.Caller.ExpiresAt; long && !expiry.IsZero() {
		w.expiry = time.AfterFunc(expiry.Sub(w.set.options.Now()), func() { w.End(ErrEnded) })
	}
	w.beats = true
}

// Relay gives a long stream of a gateway a place. When there are too many, it ends another one (G20). It counts streams, because the sessions
// are the upstream's.
func (w *Writer) Relay() {
	o := w.set
	o.mu.Lock()
	evicted, evicts := o.relayed.Open(w, w.ctx.who.Caller.Subject)
	o.mu.Unlock()
	if evicts {
		evicted.End(ErrEvicted)
		o.noteEviction("stream", []string{evicted.ctx.who.Caller.Grant})
	}
}

// outlast removes the server's WriteTimeout, because an answer may take longer; each write sets its own deadline. An unread body gets a read
// deadline, because net/http waits for its end before it sends anything.
func (w *Writer) outlast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.control.SetWriteDeadline(time.Time{}) // recorders in tests have no deadlines
	if w.isUnread() {
		_ = w.control.SetReadDeadline(time.Now().Add(bodyLimit))
	}
}

// beat is what happens again and again, as long as the answer lasts.
func (w *Writer) beat() {
	if w.ctx.Err() != nil {
		return
	}
	if w.outlived() {
		w.End(ErrEnded)
		return
	}
	w.comment()
}

// callLimit is how much longer than its access token an answer may take that is no long stream. Only an upstream answers a message
// with a stream that has no end.
const callLimit = 10 * time.Minute

// outlived reports that the answer goes on although what it was given for has ended, perhaps in another process.
func (w *Writer) outlived() bool {
	expiry, long := w.ctx.who.Caller.ExpiresAt, w.set.isLong(w)
	if long || !w.relayed || expiry.IsZero() || w.set.options.Now().Before(expiry) {
		return (long || w.relayed) && w.set.revoked(w)
	}
	return !w.set.options.Now().Before(expiry.Add(callLimit))
}

// lasting reports that the answer may go on for long, so that it ends with the token that it was asked for.
func (w *Writer) lasting() bool { return w.long || w.relayed }

// ended says why nothing can be written any more.
func (w *Writer) ended() error {
	if w.stopped {
		return context.Canceled
	}
	return w.ctx.Err()
}

// comment keeps proxies from closing an idle stream. Before the first event it would be an early 200.
func (w *Writer) comment() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.beats || w.ended() != nil {
		return
	}
	w.limit()
	if w.events && w.betweenEvents() {
		_, _ = w.ResponseWriter.Write([]byte(": keep-alive\n\n"))
		_ = w.control.Flush()
	}
}

// Finish must be called before the handler returns, because the ResponseWriter is invalid afterwards. net/http then sends the rest of the answer,
// within the write deadline that Finish sets, and removes that deadline.
func (w *Writer) Finish() {
	w.set.close(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused > 0 {
		w.ResponseWriter.WriteHeader(w.refused)
	}
	w.stopped = true
	if !w.late && w.isUnread() {
		_ = w.control.SetReadDeadline(time.Now().Add(bodyLimit)) // net/http waits for it before it answers
	}
	if !w.limited {
		w.limit()
	}
	if w.expiry != nil {
		w.expiry.Stop()
	}
	if w.push != nil {
		w.push.Stop()
	}
	w.ctx.end(nil)
	w.reserved.Release()
	w.traced.recorder.End()
}

// Unanswered returns why an answer was cut before it began. It returns nil when the answer began or the client has gone.
func (w *Writer) Unanswered() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun || w.ctx.client.Err() != nil {
		return nil
	}
	return context.Cause(w.ctx)
}

// IsAwaited reports that the client waits for an answer that has no status yet.
func (w *Writer) IsAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.begun && w.ended() == nil
}
