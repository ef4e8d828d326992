package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// scan reads a text once, from its beginning to its end.
type scan struct {
	text   []byte
	tokens *jsontext.Decoder // of the text, or of one with the same offsets
	isHead bool              // ends before a result or error

	// It fails for what parsers could read in different ways: another spelling of a significant
	// name, and a significant value of another type. Many servers read a list with one name as the
	// name.
	isStrict bool
	base     int // offset of the text in the body, for errors
}

func (s *scan) messages(limit int) (found []Located, batch bool, err error) {
	if batch = s.tokens.PeekKind() == '['; !batch {
		m, err := s.message()
		return []Located{m}, false, errors.Join(err, s.end())
	}
	_, _ = s.tokens.ReadToken()
	for s.tokens.PeekKind() != ']' {
		if len(found) == limit {
			return found, true, errManyMessages
		}
		m, err := s.message()
		if found = append(found, m); err != nil {
			return found, true, err
		}
	}
	_, _ = s.tokens.ReadToken()
	return found, true, s.end()
}

func (s *scan) end() error {
	switch _, err := s.tokens.ReadToken(); {
	case err == io.EOF: //nolint:errorlint // the decoder does not wrap it
		return nil
	case err != nil:
		return err
	}
	return s.errorAt(int(s.tokens.InputOffset()), "there is data after the message")
}

// start returns the offset of the next value.
func (s *scan) start() int {
	at := int(s.tokens.InputOffset())
	return at + len(s.text[at:]) - len(bytes.TrimLeft(s.text[at:], " \t\r\n,:"))
}

func (s *scan) errorAt(at int, text string) error {
	return &messageError{code: sdk.CodeInvalidRequest, text: fmt.Sprintf("%s (at byte %d)", text, s.base+at)}
}

func (s *scan) message() (m Located, err error) {
	m.Text.from, m.isObject = s.start(), s.tokens.PeekKind() == '{'
	err = s.members("the message", func(name string) error { return s.member(&m, name) })
	m.Text.to = max(m.Text.from, int(s.tokens.InputOffset()))
	return m, err
}

// members reads an object, and calls read for each value.
func (s *scan) members(of string, read func(name string) error) error {
	kind := s.tokens.PeekKind()
	switch {
	case !s.isStrict || kind == 0: // a syntax error, which the next read returns
		return EachMember(s.tokens, read)
	case kind != '{':
		return s.errorAt(s.start(), of+" is not an object")
	}
	_, err := s.tokens.ReadToken()
	for err == nil && s.tokens.PeekKind() != '}' {
		err = s.strictMember(read)
	}
	if err == nil {
		_, err = s.tokens.ReadToken()
	}
	return err
}

func (s *scan) strictMember(read func(name string) error) error {
	at := s.start()
	name, _, err := s.string("a member name")
	if err != nil {
		return err
	}
	if exact := variantOfMember(name); exact != "" {
		return s.errorAt(at, "a member name is another spelling of "+exact)
	}
	return read(name)
}

func (s *scan) member(m *Located, name string) error {
	switch name {
	case "jsonrpc":
		return s.value(&m.Version)
	case "id":
		m.ids++
		return s.value(&m.ID)
	case "method":
		return s.method(m)
	case "params":
		return s.params(m)
	case "result", "error":
		if s.isHead {
			return errHead
		}
	}
	switch name {
	case "result":
		return s.value(&m.Result)
	case "error":
		return s.value(&m.Error)
	}
	switch variantOf(name, significant) {
	case "id":
		m.ids++
	case "method":
		m.hasMethod = true
	}
	return s.tokens.SkipValue()
}

func (s *scan) method(m *Located) error {
	m.hasMethod, m.IsCall = true, s.tokens.PeekKind() != 'n'
	at := s.start()
	method, _, err := s.string("method")
	m.Method, m.methods = method, append(m.methods, method)
	if err != nil || !s.isStrict || len(method) > maxMethod {
		return err
	}
	if exact := variantOfMethod(method); exact != "" {
		return s.errorAt(at, "method is another spelling of "+exact)
	}
	return nil
}

func (s *scan) params(m *Located) error {
	m.Params.from = s.start()
	defer func() { m.Params.to = max(m.Params.from, int(s.tokens.InputOffset())) }()
	before := len(m.Names)
	err := s.objectOrNull("params", func() error {
		return s.members("params", func(name string) error { return s.parameter(m, name) })
	})
	if err == nil && before > 0 && len(m.Names) == before { // duplicate params, of which the SDK takes the last
		m.Names = append(m.Names, "")
	}
	return err
}

// objectOrNull reads the next value.
func (s *scan) objectOrNull(of string, read func() error) error {
	switch kind := s.tokens.PeekKind(); {
	case kind == 'n':
		return s.tokens.SkipValue()
	case s.isStrict && kind != '{' && kind != 0:
		return s.errorAt(s.start(), of+" is neither an object nor null")
	}
	return read()
}

func (s *scan) parameter(m *Located, name string) error {
	switch name {
	case "name":
		name, isString, err := s.string("name")
		if isString {
			m.Names = append(m.Names, name)
		}
		return err
	case "uri":
		return s.value(&m.uri)
	case "ref":
		return s.value(&m.ref)
	case "notifications":
		return s.value(&m.notifications)
	case "arguments":
		return s.value(&m.Arguments)
	case "requestId":
		return s.value(&m.RequestID)
	case "progressToken":
		return s.value(&m.Progress)
	case "_meta":
		return s.objectOrNull("_meta", func() error { return s.meta(m) })
	}
	if s.isStrict {
		m.variant = cmp.Or(m.variant, variantOf(name, referring))
	}
	return s.tokens.SkipValue()
}

func (s *scan) meta(m *Located) error {
	return EachMember(s.tokens, func(name string) error {
		switch name {
		case "progressToken":
			return s.value(&m.CallProgress)
		case "io.modelcontextprotocol/protocolVersion":
			return s.value(&m.Revision)
		}
		return s.tokens.SkipValue()
	})
}

// string reads a value, and returns a copy of it if it is a string.
func (s *scan) string(of string) (text string, isString bool, err error) {
	switch kind := s.tokens.PeekKind(); {
	case kind != '"' && kind != 0 && s.isStrict:
		return "", false, s.errorAt(s.start(), of+" is not a string")
	case kind != '"':
		return "", false, s.tokens.SkipValue()
	case !s.isStrict:
		token, err := s.tokens.ReadToken()
		if err != nil {
			return "", false, err
		}
		return token.String(), true, nil
	}
	var at Span
	if err := s.value(&at); err != nil {
		return "", false, err
	}
	quoted := at.Of(s.text)
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), true, nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, quoted)
	switch {
	case err != nil: // it is not valid
		return "", false, s.errorAt(at.from, of+" has an unpaired surrogate")
	case slices.Contains(unquoted, 0): // it ends strings in C
		return "", false, s.errorAt(at.from, of+" has a NUL")
	}
	return string(unquoted), true, nil
}

func (s *scan) value(at *Span) error {
	value, err := s.tokens.ReadValue()
	end := int(s.tokens.InputOffset())
	if err == nil {
		*at = Span{end - len(value), end}
	}
	return err
}

// IsPresent reports whether a member has a value other than null.
func IsPresent(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }
