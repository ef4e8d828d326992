package jsonrpc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readStrict parses a body, and refuses one in which JSON parsers could find different calls: with
// duplicate names, variants of significant names, invalid UTF-8, data after the message, or batch
// elements that are no messages. It refuses unpaired surrogates in names and in significant values,
// and accepts them in other values, because clients produce them when they truncate a text.
func readStrict(body []byte) (Message, error) {
	text, err := normalize(body)
	if err != nil {
		return Message{}, err
	}
	r := reader{Message: Message{Body: body}, tokens: jsontext.NewDecoder(bytes.NewBuffer(text))} // reads in place
	if err := errors.Join(r.messages(), r.end()); err != nil {
		return r.Message, messageErrorOf(err)
	}
	if !r.Decoded {
		return r.Message, &messageError{code: sdk.CodeInvalidRequest, text: "the batch is empty"}
	}
	return r.Message, r.checkLengths()
}

// normalize returns the body without unpaired surrogates in values, and with the same offsets. It
// refuses an empty body and one in another encoding than UTF-8.
func normalize(body []byte) ([]byte, error) {
	switch {
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return nil, &messageError{code: sdk.CodeParseError, text: "the body is empty"}
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return nil, &messageError{code: sdk.CodeParseError, text: "the body begins with a byte order mark"}
	case !utf8.Valid(body):
		return nil, &messageError{code: sdk.CodeParseError, text: "the body is not valid UTF-8"}
	case tooDeep(body):
		return nil, &messageError{code: sdk.CodeInvalidRequest,
			text: fmt.Sprintf("the body nests deeper than %d levels", maxDepth)}
	}
	return replaceSurrogates(body)
}

// errLongBatch is the error for a batch whose response could be many times as long.
var errLongBatch = &messageError{rule: "G19", code: sdk.CodeInvalidRequest,
	text: fmt.Sprintf("the batch has more than %d messages", maxBatch)}

// reader parses a body from its beginning to its end.
type reader struct {
	Message
	tokens *jsontext.Decoder
	last   int64 // offset of the last value or member name
	base   int64 // offset of Body in the body of the request
}

func (r *reader) messages() error {
	if r.tokens.PeekKind() != '[' {
		return r.message()
	}
	if _, err := r.tokens.ReadToken(); err != nil {
		return err
	}
	for count := 1; r.tokens.PeekKind() != ']'; count++ {
		if count > maxBatch {
			return errLongBatch
		}
		if err := r.message(); err != nil {
			return err
		}
	}
	r.ID = nil
	_, err := r.tokens.ReadToken()
	return err
}

func (r *reader) end() error {
	switch _, err := r.tokens.ReadToken(); {
	case err == io.EOF: //nolint:errorlint // the decoder does not wrap it
		return nil
	case err != nil:
		return err
	}
	r.last = r.tokens.InputOffset()
	return r.errorAt("there is data after the message")
}

// message reads one message. It checks only the types of significant values: many servers read a
// list with one name as the name.
func (r *reader) message() error {
	var method []byte
	var sent parameters
	err := r.members("the message", func(name []byte) (err error) {
		kind := r.tokens.PeekKind()
		switch string(name) {
		case "id":
			r.ID, err = r.value()
			return err
		case "method":
			if method, err = r.text("method"); err == nil {
				err = r.checkMethod(method)
			}
			return err
		case "params":
			if kind == '{' {
				sent, err = r.parameters()
				return err
			}
			if kind != 'n' {
				return r.errorAt("params is neither an object nor null")
			}
		}
		return r.tokens.SkipValue()
	})
	r.Decoded = true
	r.methods = append(r.methods, string(method))
	r.addMethods([]string{string(method)}, []string{string(sent.name)})
	if err != nil {
		return err
	}
	return r.addNames(string(method), sent)
}

// parameters are the members of params that name a tool, prompt or resource.
type parameters struct {
	name          []byte // nil for none
	uri           value
	ref           value  // of completion/complete
	notifications value  // of subscriptions/listen
	variant       string // the member of these of which another member name is another spelling; "" for none
}

// value is raw JSON and its offset in the body. The zero value is none.
type value struct {
	raw []byte
	at  int64
}

func (r *reader) parameters() (found parameters, err error) {
	err = r.members("params", func(name []byte) (err error) {
		kind := r.tokens.PeekKind()
		switch string(name) {
		case "name":
			found.name, err = r.text("name")
			return err
		case "uri":
			found.uri, err = r.locatedValue()
			return err
		case "ref":
			found.ref, err = r.locatedValue()
			return err
		case "notifications":
			found.notifications, err = r.locatedValue()
			return err
		case "_meta":
			if kind != '{' && kind != 'n' {
				return r.errorAt("_meta is neither an object nor null")
			}
		default:
			found.variant = cmp.Or(found.variant, variantOf(name, referring))
		}
		return r.tokens.SkipValue()
	})
	return found, err
}

// members reads an object, and calls read for each value.
func (r *reader) members(of string, read func(name []byte) error) error {
	switch kind := r.tokens.PeekKind(); {
	case kind == 0: // a syntax error, which the next read returns
	case kind != '{':
		r.last = r.nextOffset()
		return r.errorAt(of + " is not an object")
	}
	if _, err := r.tokens.ReadToken(); err != nil {
		return err
	}
	for r.tokens.PeekKind() != '}' {
		name, err := r.text("a member name")
		if err != nil {
			return err
		}
		if exact := variantOfMember(name); exact != "" {
			return r.errorAt("a member name is another spelling of " + exact)
		}
		if err := read(name); err != nil {
			return err
		}
	}
	_, err := r.tokens.ReadToken()
	return err
}

// value returns the next value as raw JSON.
func (r *reader) value() ([]byte, error) {
	value, err := r.tokens.ReadValue()
	end := r.tokens.InputOffset()
	r.last = end - int64(len(value))
	return r.Body[r.last:end], err
}

func (r *reader) locatedValue() (value, error) {
	raw, err := r.value()
	return value{raw, r.base + r.last}, err
}

// nextOffset returns the offset of the next value.
func (r *reader) nextOffset() int64 {
	at := r.tokens.InputOffset()
	return at + int64(len(r.Body[at:])-len(bytes.TrimLeft(r.Body[at:], " \t\r\n,:")))
}

// text returns the next value, which must be a string.
func (r *reader) text(of string) ([]byte, error) {
	if kind := r.tokens.PeekKind(); kind != '"' && kind != 0 {
		r.last = r.nextOffset()
		return nil, r.errorAt(of + " is not a string")
	}
	quoted, err := r.value()
	if err != nil || bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Trim(quoted, `"`), err
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil { // an unpaired surrogate is not valid
		return nil, r.errorAt(of + " has an unpaired surrogate")
	}
	if bytes.IndexByte(text, 0) >= 0 { // it ends strings in C
		return nil, r.errorAt(of + " has a NUL")
	}
	return text, nil
}

// checkMethod refuses a method that an upstream may read as another one.
func (r *reader) checkMethod(method []byte) error {
	if len(method) > maxMethod {
		return longError("method", maxMethod)
	}
	if exact := variantOfMethod(string(method)); exact != "" {
		return r.errorAt("method is another spelling of " + exact)
	}
	return nil
}

// errorAt returns an error at the last value.
func (r *reader) errorAt(text string) error {
	return &messageError{code: sdk.CodeInvalidRequest, text: fmt.Sprintf("%s (at byte %d)", text, r.base+r.last)}
}
