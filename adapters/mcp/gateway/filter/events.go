package filter

import (
	"bytes"
	"errors"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
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
	event buffer
	split jsonrpc.Splitter
	emit  func(raw []byte, failed error) error
}

// write reads a part of the stream, and emits each event when it is complete.
func (e *events) write(p []byte) error {
	for len(p) > 0 {
		length, ends := e.split.Next(p)
		e.event.keep(p[:length])
		if p = p[length:]; ends == jsonrpc.EventEnd || ends == jsonrpc.LineEnd && e.isApart() {
			if err := e.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// isApart reports whether the line belongs to no event: a comment before it, or the second byte of
// the line end after the last one.
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
