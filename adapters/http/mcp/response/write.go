package response

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
)

// WriteHeader tells proxies not to buffer events. It holds a refusal in plain text back until Write has its words.
func (w *Writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
	if status >= http.StatusBadRequest && !w.relayed && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = status
		return
	}
	w.events = w.unbuffer() && w.relayed
	w.ResponseWriter.WriteHeader(status)
}

// Write fails once the stream has ended (G16). A refusal becomes a JSON-RPC error, in which input can only be a quoted string.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ended(); err != nil {
		return 0, fmt.Errorf("writing to an ended stream: %w", err)
	}
	w.begun = true
	if status := w.refused; status > 0 {
		w.refused = 0
		jsonrpc.WriteErrorFor(w.ResponseWriter, status, w.id, sdk.CodeInvalidRequest, strings.TrimSpace(string(p)))
		return len(p), nil
	}
	if w.events = w.unbuffer(); w.events {
		w.remember(p)
	}
	w.unsent += len(p)
	if w.written += len(p); w.written > buffered || w.events || w.long || w.limited {
		w.limit()
	}
	return w.ResponseWriter.Write(p)
}

// longestEnd is the length of the longest end that an event can have.
const longestEnd = len("\r\n\r\n")

// remember keeps the last bytes, because what an upstream or another replica sends may be cut anywhere.
func (w *Writer) remember(p []byte) {
	p = p[max(0, len(p)-longestEnd):]
	copy(w.tail[:], w.tail[len(p):])
	copy(w.tail[longestEnd-len(p):], p)
}

// betweenEvents reports whether a comment would stand by itself.
func (w *Writer) betweenEvents() bool {
	tail := string(w.tail[:])
	return w.tail == [longestEnd]byte{} || tail == "\r\n\r\n" || strings.HasSuffix(tail, "\n\n") || strings.HasSuffix(tail, "\r\r")
}

// FlushError is what http.ResponseController calls.
func (w *Writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ended(); err != nil {
		return fmt.Errorf("flushing an ended stream: %w", err)
	}
	w.beats = true // more is to come
	if w.single && w.ctx.who.served.Load() && !w.long && w.unsent <= buffered {
		if w.push == nil {
			w.push = time.AfterFunc(w.set.FlushDelay, w.send)
		}
		return nil
	}
	return w.flush()
}

// send is for an answer that goes on all the same.
func (w *Writer) send() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.push = nil; w.ended() == nil {
		_ = w.flush() // the next write returns the error
	}
}

func (w *Writer) flush() error {
	w.unsent = 0
	w.limit()
	return w.control.Flush()
}

// unbuffer reports whether this is a stream of events. Setting the header again is harmless.
func (w *Writer) unbuffer() bool {
	if !strings.HasPrefix(strings.ToLower(w.Header().Get("Content-Type")), EventStream) {
		return false
	}
	w.Header().Set("X-Accel-Buffering", "no")
	return true
}

func (w *Writer) limit() {
	w.limited = true
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // recorders in tests have no deadlines
}
