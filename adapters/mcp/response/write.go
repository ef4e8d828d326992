package response

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/connection"
)

// WriteHeader tells proxies not to buffer events. It delays a refusal in plain text until Write has
// its text.
func (w *Writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
	if status >= http.StatusBadRequest && !w.relayed &&
		strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = status
		return
	}
	w.events = w.disableBuffering() && w.relayed
	w.ResponseWriter.WriteHeader(status)
}

// Write fails after the response has ended. It converts a refusal in plain text to a JSON-RPC
// error, which quotes request data in it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ended(); err != nil {
		return 0, fmt.Errorf("writing to an ended stream: %w", err)
	}
	w.begun = true
	if status := w.refused; status > 0 {
		w.refused = 0
		message.WriteErrorFor(w.ResponseWriter, status, w.id, sdk.CodeInvalidRequest, strings.TrimSpace(string(p)))
		return len(p), nil
	}
	if w.events = w.disableBuffering(); w.events {
		w.keepTail(p)
	}
	if w.observe != nil {
		w.observe(w.Header(), p)
	}
	if w.written += len(p); w.written > buffered || w.events || w.long || w.limited {
		w.setWriteDeadline()
	}
	return w.ResponseWriter.Write(p)
}

// longestSeparator is the length of the longest separator of events.
const longestSeparator = len("\r\n\r\n")

// keepTail keeps the last bytes, because an upstream or another replica may send events in pieces.
func (w *Writer) keepTail(p []byte) {
	p = p[max(0, len(p)-longestSeparator):]
	copy(w.tail[:], w.tail[len(p):])
	copy(w.tail[longestSeparator-len(p):], p)
}

// takesComment reports whether a comment can be sent now: the last event is complete, and the body
// is neither compressed nor of a fixed length.
func (w *Writer) takesComment() bool {
	if !w.events || w.Header().Get("Content-Encoding") != "" || w.Header().Get("Content-Length") != "" {
		return false
	}
	tail := string(w.tail[:])
	return w.tail == [longestSeparator]byte{} || tail == "\r\n\r\n" || strings.HasSuffix(tail, "\n\n") ||
		strings.HasSuffix(tail, "\r\r")
}

// FlushError is called by http.ResponseController. A stream without a first event gets the opening
// comment.
func (w *Writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ended(); err != nil {
		return fmt.Errorf("flushing an ended stream: %w", err)
	}
	w.sendComments = true // a response that flushes may take long
	if w.long && w.written == 0 && w.takesComment() {
		w.written, _ = w.ResponseWriter.Write(message.OpeningComment)
	}
	return w.flush()
}

func (w *Writer) flush() error {
	w.setWriteDeadline()
	return w.control.Flush()
}

// disableBuffering reports whether the response is a stream of events, and tells nginx not to
// buffer it.
func (w *Writer) disableBuffering() bool {
	if !message.IsEventStream(w.Header()) {
		return false
	}
	w.Header().Set("X-Accel-Buffering", "no")
	return true
}

func (w *Writer) setWriteDeadline() {
	w.limited = true
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // recorders in tests have no deadlines
}

// bodyLimit is the time that a client has to send a body.
const bodyLimit = 30 * time.Second

func (w *Writer) beginBody() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readingBody = true
	w.bodyTimer = time.AfterFunc(w.registry.BodyLimit, w.expireBody)
}

// expireBody makes reads from the connection fail while the body is read.
func (w *Writer) expireBody() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readingBody && !w.stopped {
		w.bodyExpired = true
		_ = w.control.SetReadDeadline(time.Now()) // recorders in tests have no deadlines
	}
}

// endBody removes the deadline if the body was complete before it took effect.
func (w *Writer) endBody(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodyTimer.Stop()
	if w.readingBody = false; w.bodyExpired && err == nil {
		_ = w.control.SetReadDeadline(time.Time{})
	}
}

// isUnread reports whether the request has a body that was not read.
func (w *Writer) isUnread() bool {
	body := w.request.Body
	return body != nil && body != http.NoBody && !w.hasBody
}

// tracedWriter records the status in the trace before it is sent.
type tracedWriter struct {
	http.ResponseWriter
	recorder *connection.Recorder
	status   int // 0 before it is sent
}

func (t *tracedWriter) record(status int) {
	if t.status > 0 || status < http.StatusOK {
		return
	}
	t.status = status
	t.recorder.Answer(status)
}

// WriteHeader implements http.ResponseWriter.
func (t *tracedWriter) WriteHeader(status int) {
	t.record(status)
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *tracedWriter) Write(p []byte) (int, error) {
	t.record(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// FlushError is called by http.ResponseController.
func (t *tracedWriter) FlushError() error {
	t.record(http.StatusOK)
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is called by http.ResponseController, which sets deadlines.
func (t *tracedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
