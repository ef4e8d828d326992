package filter

import (
	"bytes"
	"errors"
)

const (
	maxMessage   = 16 << 20 // bytes of a message that is read
	smallMessage = 64 << 10 // bytes that are not reserved
)

var errTooLong = errors.New("a message of the MCP server is longer than 16 MiB")

// buffer keeps a message until it is complete.
type buffer struct {
	bytes.Buffer
	reserve func(length int64) error
	failed  error // the message is too long, or there is no memory for it
}

// keep adds a part, and drops a message that it cannot keep.
func (b *buffer) keep(p []byte) {
	length := b.Len() + len(p)
	switch {
	case b.failed != nil:
		return
	case length > maxMessage:
		b.failed = errTooLong
	case length > smallMessage:
		b.failed = b.reserve(2 * int64(length)) // a buffer grows to twice its length
	}
	if b.failed != nil {
		b.Buffer = bytes.Buffer{}
		return
	}
	_, _ = b.Write(p)
}

// events divides a stream of server-sent events while it passes.
type events struct {
	event  buffer
	midway bool // of a line
	wasCR  bool // the last byte
	emit   func(raw []byte, failed error) error
}

// write reads a part of the stream, and emits each event when it is complete.
func (e *events) write(p []byte) error {
	for len(p) > 0 {
		end, isSecond := bytes.IndexAny(p, "\r\n"), e.wasCR && p[0] == '\n' // the second byte of a line end
		e.wasCR = false
		if end < 0 {
			e.event.keep(p)
			e.midway = true
			return nil
		}
		e.event.keep(p[:end+1])
		endsEvent := end == 0 && !e.midway && !isSecond || e.isApart()
		e.midway, e.wasCR, p = false, p[end] == '\r', p[end+1:]
		if endsEvent {
			if err := e.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// isApart reports whether the line belongs to no event: a comment before it, or the second byte of the line end after the last one.
func (e *events) isApart() bool {
	raw := e.event.Bytes()
	return len(raw) > 0 && (raw[0] == ':' || string(raw) == "\n")
}

// end emits what is kept, at the end of an event or of the stream.
func (e *events) end() error {
	err := e.emit(e.event.Bytes(), e.event.failed)
	e.event = buffer{reserve: e.event.reserve}
	return err
}

// field returns the name and the value of a line of an event.
func field(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(bytes.TrimRight(bytes.TrimPrefix(line, byteOrderMark), "\r\n"), []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

var byteOrderMark = []byte("\ufeff")

// lines divides an event into its lines with their ends.
func lines(raw []byte) (found [][]byte) {
	for len(raw) > 0 {
		end := bytes.IndexAny(raw, "\r\n") + 1
		if end == 0 {
			end = len(raw)
		}
		if end < len(raw) && raw[end-1] == '\r' && raw[end] == '\n' {
			end++
		}
		found = append(found, raw[:end])
		raw = raw[end:]
	}
	return found
}

// dataOf returns the payload of an event, nil for none, and its type.
func dataOf(raw []byte) (payload []byte, kind string) {
	var parts [][]byte
	for _, line := range lines(raw) {
		switch name, value := field(line); string(name) {
		case "data":
			parts = append(parts, value)
		case "event":
			kind = string(value)
		}
	}
	return bytes.Join(parts, []byte("\n")), kind
}

// withData returns an event with another payload, in the place of its first data field.
func withData(raw, payload []byte) (event []byte) {
	written := false
	for _, line := range lines(raw) {
		if name, _ := field(line); string(name) != "data" {
			event = append(event, line...)
			continue
		}
		if !written {
			event = append(event, "data: "...)
			event = append(event, bytes.ReplaceAll(payload, []byte("\n"), []byte("\ndata: "))...)
			event = append(event, '\n')
		}
		written = true
	}
	return event
}
