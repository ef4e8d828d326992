package jsonrpc

import (
	"bytes"
	"strconv"
)

// Outcome reads the outcome of a request in its response while the response passes: a JSON-RPC
// response, or a stream of events that ends with one. It keeps a few bytes and not the response,
// which may be large. A batch has no single outcome.
type Outcome struct {
	Events bool // the response is a stream of events

	Found   bool   // the response to the request was complete
	IsError bool   // it is a JSON-RPC error
	Code    *int64 // of the error
	Failed  bool   // it is a result with isError, of a tool

	reader responseReader
	field  []byte // the beginning of a line of an event
	inData bool   // of a data field
	split  Splitter
}

// maxField is longer than "data: ".
const maxField = 6

// Write reads a part of the response. It always succeeds.
func (o *Outcome) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && !o.Found; {
		if !o.Events {
			o.reader.write(rest)
			o.finish()
			break
		}
		length, ends := o.split.Next(rest)
		o.readLine(bytes.TrimRight(rest[:length], "\r\n"))
		o.endLine(ends)
		rest = rest[length:]
	}
	return len(p), nil
}

// readLine reads a part of a line of an event.
func (o *Outcome) readLine(part []byte) {
	if len(part) == 0 {
		return
	}
	if o.inData {
		o.reader.write(part)
		return
	}
	needed := min(max(0, maxField-len(o.field)), len(part))
	o.field = append(o.field, part[:needed]...)
	if name, value, found := bytes.Cut(o.field, []byte(":")); found && string(name) == "data" {
		o.inData = true
		o.reader.write(value)
		o.reader.write(part[needed:])
	}
}

// endLine ends a line or an event.
func (o *Outcome) endLine(ends Boundary) {
	switch ends {
	case Nothing:
		return
	case EventEnd:
		o.finish()
		o.reader = responseReader{}
	}
	o.field, o.inData = o.field[:0], false
}

// finish takes the outcome from a complete message that is a response. Requests and notifications
// have neither a result nor an error.
func (o *Outcome) finish() {
	s := &o.reader
	if !s.complete || !s.hasResult && !s.hasError {
		return
	}
	o.Found, o.IsError, o.Failed = true, s.hasError, s.isError
	if code, err := strconv.ParseInt(string(s.code), 10, 64); err == nil && s.hasError {
		o.Code = &code
	}
}

// responseReader finds the members of a JSON-RPC response at the two outer levels. It also accepts
// invalid JSON, because the response passes unchanged.
type responseReader struct {
	complete                     bool
	hasResult, hasError, isError bool
	code                         []byte // of the error

	depth    int
	quoted   bool
	escaped  bool
	isName   bool    // the string or the last string is a member name
	expects  bool    // a member name
	name     []byte  // of the current string, its beginning
	outer    section // the member at the outer level
	inner    string  // the member of the error or the result
	inValue  bool    // a number or literal of inner
	literal  []byte
	isObject [2]bool // the two outer levels
}

type section int

const (
	other section = iota
	result
	failure
)

const maxText = 20 // bytes of names and literals that are kept

func (s *responseReader) write(p []byte) {
	quote, slash := -1, -1 // the next ones, to scan each byte once
	for i := 0; i < len(p) && !s.complete; i++ {
		c := p[i]
		switch {
		case s.escaped:
			s.escaped = false
			s.keep(p[i : i+1])
		case s.quoted:
			quote, slash = indexFrom(p, i, '"', quote), indexFrom(p, i, '\\', slash)
			end := min(quote, slash)
			s.keep(p[i:end])
			if i = end; end < len(p) {
				s.escaped, s.quoted = end == slash, end == slash
			}
		case c == '"':
			s.quoted, s.name, s.isName = true, s.name[:0], s.expects
		default:
			s.structure(c)
		}
	}
}

// indexFrom returns the index of c from a position on, len(p) for none. known is an index from an
// earlier position, or -1.
func indexFrom(p []byte, from int, c byte, known int) int {
	if known >= from {
		return known
	}
	if at := bytes.IndexByte(p[from:], c); at >= 0 {
		return from + at
	}
	return len(p)
}

// keep keeps the beginning of a string.
func (s *responseReader) keep(p []byte) {
	if s.depth <= 2 {
		s.name = append(s.name, p[:min(len(p), maxText-len(s.name))]...)
	}
}

func (s *responseReader) structure(c byte) {
	switch c {
	case '{', '[':
		s.open(c == '{')
	case '}', ']':
		s.endLiteral()
		s.depth = max(0, s.depth-1)
		s.expects, s.complete = false, s.depth == 0
	case ',':
		s.endLiteral()
		s.expects = s.depth <= 2 && s.depth > 0 && s.isObject[s.depth-1]
	case ':':
		s.member()
	case ' ', '\t', '\r', '\n':
	default:
		if s.inValue && len(s.literal) < maxText {
			s.literal = append(s.literal, c)
		}
	}
}

func (s *responseReader) open(object bool) {
	s.inValue = false
	if s.depth < 2 {
		s.isObject[s.depth] = object
	}
	s.depth++
	s.expects = object && s.depth <= 2
}

// member begins the value of a member.
func (s *responseReader) member() {
	if s.expects = false; !s.isName || s.depth > 2 {
		return
	}
	s.isName = false
	name := string(s.name)
	if s.depth == 2 {
		s.inner, s.literal, s.inValue = name, s.literal[:0], s.outer == failure && name == "code" ||
			s.outer == result && name == "isError"
		return
	}
	s.outer = other
	switch name {
	case "result":
		s.outer, s.hasResult = result, true
	case "error":
		s.outer, s.hasError = failure, true
	}
}

// endLiteral takes the number or literal that ends here.
func (s *responseReader) endLiteral() {
	if !s.inValue {
		return
	}
	s.inValue = false
	switch text := string(s.literal); s.inner {
	case "code":
		s.code = []byte(text)
	case "isError":
		s.isError = text == "true"
	}
}
