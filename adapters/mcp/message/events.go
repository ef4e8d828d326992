package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
		b.Failed = errors.New("a message of the MCP server is longer than 16 MiB")
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

// next returns the length of the first piece of p, and whether an event is complete after it. An LF
// after a CR is a separate piece, because it can come much later. A comment is complete by itself,
// and so is such an LF between events.
func (e *Events) next(p []byte) (length int, isComplete bool) {
	kept := e.event.Bytes()
	isApart := e.event.Failed == nil &&
		(len(kept) == 0 && (p[0] == ':' || p[0] == '\n') || len(kept) > 0 && kept[0] == ':')
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

// WithEventData writes an event again with other data, in one line, and without the text of
// comments and of unknown fields, because some clients also end lines at other characters.
func WithEventData(event, data []byte) (changed []byte) {
	hasData := false
	for _, line := range eventLines(event) {
		switch name, value := eventField(line); string(name) {
		case "event", "id", "retry":
			if !bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				changed = fmt.Appendf(changed, "%s: %s\n", name, value)
			}
		case "data":
			if !hasData {
				changed = fmt.Appendf(changed, "data: %s\n", lineEnds.Replace(string(data)))
			}
			hasData = true
		case "":
			if line[0] == ':' {
				changed = append(changed, ':')
			}
			changed = append(changed, '\n')
		}
	}
	return changed
}

// lineEnds escapes what is a character in JSON and the end of a line for some readers of events.
var lineEnds = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// Outcome reads what the response to a call says while the response passes: JSON, or a stream of
// events that ends with it. A batch has no single outcome.
type Outcome struct {
	Found   bool   // the response was complete
	IsError bool   // it is a JSON-RPC error
	Code    *int64 // of the error
	Failed  bool   // it is a result with isError, of a tool

	memory Reservation
	whole  Buffer
	events Events
}

// NewOutcome returns an Outcome that uses the memory for a long response, or for each long event.
// Without memory, it finds nothing.
func NewOutcome(memory Reservation) *Outcome {
	o := &Outcome{memory: memory}
	o.whole.Reserve = o.memory.Extend
	o.events = Events{Reserve: o.memory.Extend, Emit: func(event []byte, _ error) error {
		text, _ := ParseEvent(event)
		o.find(text)
		o.memory.Release()
		return nil
	}}
	return o
}

// Read reads a piece of the response.
func (o *Outcome) Read(header http.Header, p []byte) {
	switch {
	case o.Found:
	case IsEventStream(header):
		_ = o.events.Read(p) // Emit never fails
	default:
		o.whole.Keep(p)
	}
}

// End reads a response that is not a stream, after its last piece.
func (o *Outcome) End() {
	if !o.Found {
		o.find(o.whole.Bytes())
	}
	o.whole = Buffer{}
	o.memory.Release()
}

// find takes the outcome from a response. Requests and notifications have none.
func (o *Outcome) find(text []byte) {
	found, isBatch := decodeAnyway(text)
	if isBatch || len(found) != 1 || !found[0].IsResponse() {
		return
	}
	var failure struct{ Code *int64 }
	var result struct{ IsError bool }
	if json.Unmarshal(found[0].Error, &failure) != nil {
		failure.Code = nil
	}
	_ = json.Unmarshal(found[0].Result, &result) // a tool that fails says so in an object
	o.Found, o.IsError, o.Code, o.Failed = true, found[0].Error != nil, failure.Code, result.IsError
}
