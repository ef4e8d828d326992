// Package filter removes what the caller may not see from the responses of an MCP server elsewhere.
// Writer is the http.ResponseWriter of one response: it keeps each message until it is complete,
// and sends it as Lists.Filter returns it.
package filter

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

// Writer filters one response. Finish must be called after the response is complete, or Drop if it
// never is.
type Writer struct {
	To      http.ResponseWriter
	Lists   Lists
	Reserve func(length int64) error // reserves memory for a message; Release releases it
	Release func()
	// Writes the response instead of one that cannot be read.
	Refuse func(w http.ResponseWriter, status int, reason error)
	// Returns the message instead of an event that cannot be read; nil drops the event.
	Failure func(reason error) []byte

	whole   message.Buffer  // of a response that is not a stream
	status  int             // 0 before WriteHeader
	events  *message.Events // nil for a response that is not a stream
	refused error
}

// Header implements http.ResponseWriter.
func (w *Writer) Header() http.Header { return w.To.Header() }

// WriteHeader sends the header of a stream at once, and that of any other response with its body.
func (w *Writer) WriteHeader(status int) {
	if status < http.StatusOK || w.status > 0 {
		return
	}
	w.status = status
	header := w.Header()
	encoding := strings.Join(header.Values("Content-Encoding"), ",")
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.refused = errors.New("the MCP server answered with a content encoding, although the request accepts none")
		return
	}
	if message.IsEventStream(header) {
		removeDigests(header)
		w.events = &message.Events{Reserve: w.Reserve, Emit: w.emit}
		w.To.WriteHeader(status)
	}
}

// removeDigests removes the headers that describe the bytes of the unfiltered body.
func removeDigests(header http.Header) {
	for _, name := range []string{"Content-Length", "Etag", "Last-Modified"} {
		header.Del(name)
	}
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.refused != nil {
		return len(p), nil
	}
	if w.events == nil {
		w.whole.Reserve = w.Reserve
		w.whole.Keep(p)
		return len(p), nil
	}
	if err := w.events.Read(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushError is called by http.ResponseController.
func (w *Writer) FlushError() error {
	if w.events == nil {
		return nil
	}
	return http.NewResponseController(w.To).Flush()
}

// emit sends a filtered event.
func (w *Writer) emit(raw []byte, failed error) error {
	defer w.Release()
	payload, _ := message.ParseEvent(raw)
	var filtered []byte // stays empty for what is not a message
	if failed == nil && isJSON(payload) {
		filtered, failed = w.Lists.Filter(bytes.TrimPrefix(payload, message.ByteOrderMark))
		if failed == nil && filtered == nil {
			return nil
		}
	}
	raw = message.WithEventData(raw, filtered)
	if failed != nil {
		failure := w.Failure(failed)
		if failure == nil {
			return nil
		}
		raw = message.Event("message", "", failure)
	}
	_, err := w.To.Write(raw)
	return err
}

// isJSON reports whether a text begins as a JSON-RPC message does.
func isJSON(text []byte) bool {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, message.ByteOrderMark), " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// Finish sends what Write has kept.
func (w *Writer) Finish() {
	defer w.Release()
	if w.status == 0 {
		return
	}
	if w.events != nil {
		_ = w.events.End() // the client has gone
		return
	}
	reason := cmp.Or(w.refused, w.whole.Failed)
	contentType := strings.ToLower(strings.Join(w.Header().Values("Content-Type"), ","))
	body := w.whole.Bytes()
	filtered := body
	switch {
	case reason != nil || len(body) == 0:
	case isJSON(body) || strings.HasPrefix(contentType, "application/json"):
		filtered, reason = w.Lists.Filter(bytes.TrimPrefix(body, message.ByteOrderMark))
	case strings.Contains(contentType, message.EventStream): // some clients look for it anywhere
		reason = errors.New("the MCP server's answer has a content type that not all clients read alike")
	}
	if reason != nil {
		w.Drop()
		status := w.status
		if status < http.StatusBadRequest { // else the status tells the client enough, such as that its session is gone
			status = http.StatusBadGateway
		}
		w.Refuse(w.To, status, reason)
		return
	}
	removeDigests(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(filtered)))
	w.To.WriteHeader(w.status)
	if len(filtered) > 0 {
		_, _ = w.To.Write(filtered) // the client has gone
	}
}

// Drop removes the headers that describe the body of a response that is not sent, so that the
// client can get another response.
func (w *Writer) Drop() {
	removeDigests(w.Header())
	w.Header().Del("Content-Encoding")
}
