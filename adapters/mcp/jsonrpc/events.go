package jsonrpc

import (
	"bytes"
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
	return strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), EventStream)
}

// Event returns an event of a type with data in one line, and an id unless it is empty.
func Event(kind, id string, data []byte) []byte {
	event := append([]byte("event: "), kind...)
	if id != "" {
		event = append(append(event, "\nid: "...), id...)
	}
	return append(append(append(event, "\ndata: "...), data...), "\n\n"...)
}

// Boundary is what ends at the end of a piece of a stream.
type Boundary int

// The boundaries.
const (
	Nothing  Boundary = iota // the line goes on
	LineEnd                  // a line with content, or the second byte of its end
	EventEnd                 // an empty line
)

// Splitter divides a stream into lines and events. A line ends with CR, LF or both. The zero value
// is at the beginning of a stream.
type Splitter struct {
	midway bool // of a line
	wasCR  bool // the last byte
}

// Next returns the length of the first piece of p, which has to have a byte, and what ends with it.
// A LF after a CR is a separate piece, because it can come much later.
func (s *Splitter) Next(p []byte) (length int, ends Boundary) {
	if s.wasCR && p[0] == '\n' {
		s.wasCR = false
		return 1, LineEnd
	}
	length = lineLength(p)
	if length == 0 {
		s.midway, s.wasCR = true, false
		return len(p), Nothing
	}
	ends = LineEnd
	if length == 1 && !s.midway {
		ends = EventEnd
	}
	s.midway, s.wasCR = false, p[length-1] == '\r'
	return length, ends
}

// lineLength returns the length of the first line with the first byte of its end, 0 without an end.
// It scans for one byte at a time, which is much faster than for both at once.
func lineLength(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		return bytes.IndexByte(p, '\r') + 1
	}
	if before := bytes.IndexByte(p[:end], '\r'); before >= 0 {
		return before + 1
	}
	return end + 1
}

// ByteOrderMark begins texts of some servers.
var ByteOrderMark = []byte("\ufeff")

// EventField returns the name and the value of a line of an event.
func EventField(line []byte) (name, value []byte) {
	line = bytes.TrimRight(bytes.TrimPrefix(line, ByteOrderMark), "\r\n")
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// EventLines divides an event into its lines with their ends.
func EventLines(event []byte) (found [][]byte) {
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

// ParseEvent returns the data of an event, nil for none, and its type.
func ParseEvent(event []byte) (data []byte, kind string) {
	var parts [][]byte
	for _, line := range EventLines(event) {
		switch name, value := EventField(line); string(name) {
		case "data":
			parts = append(parts, value)
		case "event":
			kind = string(value)
		}
	}
	return bytes.Join(parts, []byte("\n")), kind
}

// WithEventData returns an event with other data at its first data line.
func WithEventData(event, data []byte) (changed []byte) {
	written := false
	for _, line := range EventLines(event) {
		if name, _ := EventField(line); string(name) != "data" {
			changed = append(changed, line...)
			continue
		}
		if !written {
			changed = append(changed, "data: "...)
			changed = append(changed, bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: "))...)
			changed = append(changed, '\n')
		}
		written = true
	}
	return changed
}
