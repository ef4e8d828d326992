// Package sse reads server-sent events. Splitter divides a stream while it passes, Parse reads one
// event, and Rewriter replaces the endpoint events of a stream of HTTP+SSE.
package sse

import "bytes"

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
// A LF after a CR is a piece of its own, because it can come much later.
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

var byteOrderMark = []byte("\ufeff")

// Field returns the name and the value of a line.
func Field(line []byte) (name, value []byte) {
	line = bytes.TrimRight(bytes.TrimPrefix(line, byteOrderMark), "\r\n")
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// Lines divides an event into its lines with their ends.
func Lines(event []byte) (found [][]byte) {
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

// Parse returns the data of an event, nil for none, and its type.
func Parse(event []byte) (data []byte, kind string) {
	var parts [][]byte
	for _, line := range Lines(event) {
		switch name, value := Field(line); string(name) {
		case "data":
			parts = append(parts, value)
		case "event":
			kind = string(value)
		}
	}
	return bytes.Join(parts, []byte("\n")), kind
}

// WithData returns an event with other data, in the place of its first data line.
func WithData(event, data []byte) (changed []byte) {
	written := false
	for _, line := range Lines(event) {
		if name, _ := Field(line); string(name) != "data" {
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
