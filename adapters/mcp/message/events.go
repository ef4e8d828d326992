package message

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
)

// EventStream is the media type of server-sent events.
const EventStream = "text/event-stream"

// OpeningComment begins a stream that has no event yet, because proxies send the header only with a
// part of the body.
var OpeningComment = []byte(": ok\n\n")

// IsEventStream reports whether a response is a stream of server-sent events.
func IsEventStream(header http.Header) bool {
	types := header.Values("Content-Type")
	if len(types) != 1 {
		return false
	}
	mediaType, _, _ := strings.Cut(types[0], ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), EventStream)
}

// Event returns an event of a type with data in one line, and an id unless it is empty.
func Event(kind, id string, data []byte) []byte {
	event := append([]byte("event: "), kind...)
	if id != "" {
		event = append(append(event, "\nid: "...), id...)
	}
	return append(append(append(event, "\ndata: "...), data...), "\n\n"...)
}

// ByteOrderMark begins texts of some servers.
var ByteOrderMark = []byte("\ufeff")

const (
	maxMessage   = 16 << 20 // bytes of a message of a server
	smallMessage = 64 << 10 // bytes that are not reserved
)

var errTooLong = errors.New("a message of the MCP server is longer than 16 MiB")

// Buffer keeps a message that comes in pieces.
type Buffer struct {
	Reserve func(length int64) error // for a long message; nil needs no reservation
	Failed  error                    // the message is too long, or memory for it is missing
	bytes.Buffer
}

// Keep adds a piece, and drops a message that it cannot keep.
func (b *Buffer) Keep(p []byte) {
	length := b.Len() + len(p)
	switch {
	case b.Failed != nil:
		return
	case length > maxMessage:
		b.Failed = errTooLong
	case length > smallMessage && b.Reserve != nil:
		b.Failed = b.Reserve(2 * int64(length)) // a buffer grows to twice its length
	}
	if b.Failed != nil {
		b.Buffer = bytes.Buffer{}
		return
	}
	_, _ = b.Write(p)
}

// Events divides a stream of server-sent events that comes in pieces. A line ends with CR, LF or
// both.
type Events struct {
	Reserve func(length int64) error               // as in Buffer
	Emit    func(event []byte, failed error) error // called for each event, and for each comment between them
	event   Buffer
	midway  bool // of a line
	wasCR   bool // the last byte
}

// Read reads a piece of the stream, and emits each event when it is complete.
func (e *Events) Read(p []byte) error {
	for len(p) > 0 {
		length, isComplete := e.next(p)
		e.event.Reserve = e.Reserve
		e.event.Keep(p[:length])
		if p = p[length:]; isComplete {
			if err := e.End(); err != nil {
				return err
			}
		}
	}
	return nil
}

// End emits an event that the end of the stream cuts off.
func (e *Events) End() error {
	event := e.event
	if e.event = (Buffer{}); event.Len() == 0 && event.Failed == nil {
		return nil
	}
	return e.Emit(event.Bytes(), event.Failed)
}

// next returns the length of the first piece of p, and whether an event is complete after it. A LF
// after a CR is a separate piece, because it can come much later.
func (e *Events) next(p []byte) (length int, isComplete bool) {
	kept := e.event.Bytes()
	isApart := len(kept) == 0 && (p[0] == ':' || p[0] == '\n') || len(kept) > 0 && kept[0] == ':'
	if e.wasCR && p[0] == '\n' {
		e.wasCR = false
		return 1, isApart
	}
	length = lineLength(p)
	if length == 0 {
		e.midway, e.wasCR = true, false
		return len(p), false
	}
	isEmpty := length == 1 && !e.midway
	e.midway, e.wasCR = false, p[length-1] == '\r'
	return length, isEmpty || isApart
}

// lineLength returns the length of the first line with the first byte of its end, 0 without an end.
func lineLength(p []byte) int { return bytes.IndexAny(p, "\r\n") + 1 }

// eventLines divides an event into its lines with their ends.
func eventLines(event []byte) (found [][]byte) {
	for len(event) > 0 {
		end := lineLength(event)
		if end == 0 {
			end = len(event)
		}
		if end < len(event) && event[end-1] == '\r' && event[end] == '\n' {
			end++
		}
		found = append(found, event[:end])
		event = event[end:]
	}
	return found
}

// eventField returns the name and the value of a line of an event.
func eventField(line []byte) (name, value []byte) {
	line = bytes.TrimRight(bytes.TrimPrefix(line, ByteOrderMark), "\r\n")
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// ParseEvent returns the data of an event, empty for none, and its type.
func ParseEvent(event []byte) (data []byte, kind string) {
	var parts [][]byte
	for _, line := range eventLines(event) {
		switch name, value := eventField(line); string(name) {
		case "data":
			parts = append(parts, value)
		case "event":
			kind = string(value)
		}
	}
	return bytes.Join(parts, []byte("\n")), kind
}

// WithEventData returns an event with other data, in one line.
func WithEventData(event, data []byte) (changed []byte) {
	isWritten := false
	for _, line := range eventLines(event) {
		if name, _ := eventField(line); string(name) != "data" {
			changed = append(changed, line...)
		} else if !isWritten {
			isWritten = true
			changed = append(append(append(changed, "data: "...), data...), '\n')
		}
	}
	return changed
}
