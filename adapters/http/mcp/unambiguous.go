package mcp

import (
	"bytes"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// deciding are the members that say what a message does. Some decoders take them in any case.
var deciding = [][]byte{[]byte("jsonrpc"), []byte("id"), []byte("method"), []byte("params"), []byte("name"), []byte("_meta")}

// unambiguous reads a body in which every reader of JSON finds the same calls, and nothing else: no member twice, anywhere, and none that
// decides in another spelling; neither invalid UTF-8 nor anything after the end. A batch holds messages and nothing else.
func unambiguous(body []byte) (m message, ok bool) {
	if tooDeep(body) {
		return m, false
	}
	from := decoders.Get().(*decoder)
	defer from.keep()
	from.body = *bytes.NewBuffer(body)
	from.Reset(&from.body) // which it reads in place
	r := reading{message: message{body: body}, tokens: &from.Decoder}
	ok = r.messages() && r.ends()
	return r.message, ok && r.decoded
}

// decoder keeps its stacks and names for the next body, and nothing of the last.
type decoder struct {
	jsontext.Decoder
	body bytes.Buffer
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) keep() {
	d.body = bytes.Buffer{}
	d.Reset(&d.body)
	decoders.Put(d)
}

// reading is a body that is read once, from its beginning to its end.
type reading struct {
	message
	tokens *jsontext.Decoder
}

func (r *reading) messages() bool {
	if r.tokens.PeekKind() != '[' {
		return r.one()
	}
	_, _ = r.tokens.ReadToken()
	for r.tokens.PeekKind() != ']' {
		if !r.one() {
			return false
		}
	}
	r.id = nil
	_, err := r.tokens.ReadToken()
	return err == nil
}

func (r *reading) ends() bool {
	_, err := r.tokens.ReadToken()
	return err == io.EOF //nolint:errorlint // which the decoder returns as it is
}

// one reads one message; what the values hold is the upstream's affair, but for those that say what is to be done: many a server
// takes a list of one name for the name.
func (r *reading) one() bool {
	var method, tool []byte
	read := r.members(func(name []byte) (ok bool) {
		kind := r.tokens.PeekKind()
		switch string(name) {
		case "id":
			r.id, ok = r.value()
			return ok
		case "method":
			method, ok = r.text()
			return ok
		case "params":
			if kind == '{' {
				tool, ok = r.parameters()
				return ok
			}
			if kind != 'n' {
				return false
			}
		}
		return r.tokens.SkipValue() == nil
	})
	r.decoded = true
	r.does(string(method), string(tool))
	return read
}

// parameters returns the name that is among them.
func (r *reading) parameters() (called []byte, ok bool) {
	ok = r.members(func(name []byte) (ok bool) {
		kind := r.tokens.PeekKind()
		switch string(name) {
		case "name":
			called, ok = r.text()
			return ok
		case "_meta":
			if kind != '{' && kind != 'n' {
				return false
			}
		}
		return r.tokens.SkipValue() == nil
	})
	return called, ok
}

// members reads an object, and each value with read.
func (r *reading) members(read func(name []byte) bool) bool {
	if r.tokens.PeekKind() != '{' {
		return false
	}
	_, _ = r.tokens.ReadToken()
	for r.tokens.PeekKind() != '}' {
		name, ok := r.text()
		if !ok || respelled(name) || !read(name) {
			return false
		}
	}
	_, err := r.tokens.ReadToken()
	return err == nil
}

// value is the next one as it stands in the body.
func (r *reading) value() ([]byte, bool) {
	value, err := r.tokens.ReadValue()
	end := r.tokens.InputOffset()
	return r.body[end-int64(len(value)) : end], err == nil
}

// text is the next value, if that is a string.
func (r *reading) text() ([]byte, bool) {
	if r.tokens.PeekKind() != '"' {
		return nil, false
	}
	quoted, ok := r.value()
	if !ok || bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Trim(quoted, `"`), ok
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	return text, err == nil && bytes.IndexByte(text, 0) < 0 // where a string ends for many a reader
}

// respelled reports that some decoders take a name for one that decides: in any case, or without what joins its words, or that they let
// an object inherit from it.
func respelled(name []byte) bool {
	if slices.ContainsFunc(deciding, func(exact []byte) bool { return bytes.Equal(name, exact) }) {
		return false
	}
	words := joined(name)
	return string(name) == "__proto__" || slices.ContainsFunc(deciding, func(exact []byte) bool {
		return bytes.EqualFold(name, exact) || bytes.EqualFold(words, exact)
	})
}

// joined is a name without what joins its words.
func joined(name []byte) []byte {
	if bytes.IndexByte(name, '-') < 0 && bytes.IndexByte(name, '_') < 0 {
		return name
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(name, []byte("-"), nil), []byte("_"), nil)
}
