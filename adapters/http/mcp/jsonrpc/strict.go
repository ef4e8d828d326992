package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readStrict reads a body in which every JSON reader finds the same calls. It refuses member names that stand twice, names that decide in
// another spelling, invalid UTF-8, and anything behind the message. A batch holds messages and nothing else. A surrogate without its other
// half is refused in names and in what decides, and left alone in all other values: clients produce it whenever they cut a text.
func readStrict(body []byte) (Message, error) {
	text, err := readable(body)
	if err != nil {
		return Message{}, err
	}
	from := decoders.Get().(*decoder)
	defer from.keep()
	from.body = *bytes.NewBuffer(text)
	from.Reset(&from.body) // reads in place
	r := reading{Message: Message{Body: body}, tokens: &from.Decoder}
	if err := errors.Join(r.messages(), r.ends()); err != nil {
		return r.Message, faultOf(err)
	}
	if !r.Decoded {
		return r.Message, &fault{code: sdk.CodeInvalidRequest, what: "the batch is empty"}
	}
	return r.Message, nil
}

// readable returns the body as the strict decoder can read it, byte for byte as long: without lone surrogates in values.
func readable(body []byte) ([]byte, error) {
	switch {
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return nil, &fault{code: sdk.CodeParseError, what: "the body is empty"}
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return nil, &fault{code: sdk.CodeParseError, what: "the body begins with a byte order mark"}
	case !utf8.Valid(body):
		return nil, &fault{code: sdk.CodeParseError, what: "the body is not valid UTF-8"}
	case tooDeep(body):
		return nil, &fault{code: sdk.CodeInvalidRequest, what: fmt.Sprintf("the body nests deeper than %d levels", maxDepth)}
	}
	return pairSurrogates(body)
}

// errLongBatch refuses what would be answered with many times its own length.
var errLongBatch = &fault{rule: "G19", code: sdk.CodeInvalidRequest, what: fmt.Sprintf("the batch has more than %d messages", maxBatch)}

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
	Message
	tokens *jsontext.Decoder
	last   int64 // where the value begins that was read last; a member name is one
}

func (r *reading) messages() error {
	if r.tokens.PeekKind() != '[' {
		return r.one()
	}
	if _, err := r.tokens.ReadToken(); err != nil {
		return err
	}
	for count := 1; r.tokens.PeekKind() != ']'; count++ {
		if count > maxBatch {
			return errLongBatch
		}
		if err := r.one(); err != nil {
			return err
		}
	}
	r.ID = nil
	_, err := r.tokens.ReadToken()
	return err
}

func (r *reading) ends() error {
	switch _, err := r.tokens.ReadToken(); {
	case err == io.EOF: //nolint:errorlint // the decoder returns it as it is
		return nil
	case err != nil:
		return err
	}
	r.last = r.tokens.InputOffset()
	return r.fault("there is something behind the message")
}

// one reads one message. Its values are the upstream's affair, except those that decide: many servers take a list of one name for the name.
func (r *reading) one() error {
	var method, tool []byte
	err := r.members("the message", func(name []byte) (err error) {
		kind := r.tokens.PeekKind()
		switch string(name) {
		case "id":
			r.ID, err = r.value()
			return err
		case "method":
			if method, err = r.text("method"); err == nil {
				err = r.spelled(method)
			}
			return err
		case "params":
			if kind == '{' {
				tool, err = r.parameters()
				return err
			}
			if kind != 'n' {
				return r.fault("params is neither an object nor null")
			}
		}
		return r.tokens.SkipValue()
	})
	r.Decoded = true
	r.does(string(method), string(tool))
	return err
}

// parameters returns the name that is among them.
func (r *reading) parameters() (called []byte, err error) {
	err = r.members("params", func(name []byte) (err error) {
		kind := r.tokens.PeekKind()
		switch string(name) {
		case "name":
			called, err = r.text("name")
			return err
		case "_meta":
			if kind != '{' && kind != 'n' {
				return r.fault("_meta is neither an object nor null")
			}
		}
		return r.tokens.SkipValue()
	})
	return called, err
}

// members reads an object, and each value with read.
func (r *reading) members(of string, read func(name []byte) error) error {
	switch kind := r.tokens.PeekKind(); {
	case kind == 0: // a syntax error, which the next read returns
	case kind != '{':
		r.last = r.next()
		return r.fault(of + " is not an object")
	}
	if _, err := r.tokens.ReadToken(); err != nil {
		return err
	}
	for r.tokens.PeekKind() != '}' {
		name, err := r.text("a member name")
		if err != nil {
			return err
		}
		if exact := respelled(name); exact != "" {
			return r.fault("a member name is another spelling of " + exact)
		}
		if err := read(name); err != nil {
			return err
		}
	}
	_, err := r.tokens.ReadToken()
	return err
}

// value returns the next value as it stands in the body.
func (r *reading) value() ([]byte, error) {
	value, err := r.tokens.ReadValue()
	end := r.tokens.InputOffset()
	r.last = end - int64(len(value))
	return r.Body[r.last:end], err
}

// next returns where the next value begins.
func (r *reading) next() int64 {
	at := r.tokens.InputOffset()
	return at + int64(len(r.Body[at:])-len(bytes.TrimLeft(r.Body[at:], " \t\r\n,:")))
}

// text returns the next value, which must be a string.
func (r *reading) text(of string) ([]byte, error) {
	if kind := r.tokens.PeekKind(); kind != '"' && kind != 0 {
		r.last = r.next()
		return nil, r.fault(of + " is not a string")
	}
	quoted, err := r.value()
	if err != nil || bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Trim(quoted, `"`), err
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil { // the decoder has read a replacement
		return nil, r.fault(of + " has a surrogate without its other half")
	}
	if bytes.IndexByte(text, 0) >= 0 { // where strings end for readers in C
		return nil, r.fault(of + " has a NUL")
	}
	return text, nil
}

// spelled refuses a method that some upstreams take for one of MCP.
func (r *reading) spelled(method []byte) error {
	if exact := respelledMethod(string(method)); exact != "" {
		return r.fault("method is another spelling of " + exact)
	}
	return nil
}

// fault is about the value that was read last.
func (r *reading) fault(what string) error {
	return &fault{code: sdk.CodeInvalidRequest, what: fmt.Sprintf("%s (at byte %d)", what, r.last)}
}
