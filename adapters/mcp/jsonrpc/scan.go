package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Span is where a value is in a text. The zero value is none.
type Span struct{ from, to int }

// Of returns the value, empty for none.
func (s Span) Of(text []byte) []byte { return text[s.from:s.to:s.to] }

// Located is where the values of a message are that name a call or what it calls. Of several
// members with one name the last one counts, as in the decoders of most languages.
type Located struct {
	Text    Span // the message
	Version Span
	ID      Span
	Method  string
	IsCall  bool // or a notification: it has a method that is not null
	Params  Span
	Result  Span
	Error   Span

	Revision     Span // in the metadata of a call without a session
	CallProgress Span // the progress token of a call
	Progress     Span // the token of a notification of progress
	RequestID    Span // of a cancellation
	Arguments    Span
	URI          string
	Names        []string // of the tool or prompt, in all members with that name

	isObject  bool
	ids       int      // members that a server could read as the id
	hasMethod bool     // or a member that a server could read as one
	methods   []string // in all members with that name
}

// name returns the name that most decoders find.
func (m *Located) name() string {
	if len(m.Names) == 0 {
		return ""
	}
	return m.Names[len(m.Names)-1]
}

// ErrManyMessages is the error of Scan for a batch with more messages than it may have.
var ErrManyMessages = errors.New("the batch has too many messages")

// Scan locates the messages of a body, at most a number of them. It tolerates duplicate names and
// invalid UTF-8. With an error it returns what comes before it.
func Scan(body []byte, limit int) (found []Located, batch bool, err error) {
	s := &scan{text: body, tokens: NewDecoder(body)}
	if batch = s.tokens.PeekKind() == '['; !batch {
		m, err := s.message()
		return []Located{m}, false, errors.Join(err, s.end())
	}
	_, _ = s.tokens.ReadToken()
	for s.tokens.PeekKind() != ']' {
		if len(found) == limit {
			return found, true, ErrManyMessages
		}
		m, err := s.message()
		if found = append(found, m); err != nil {
			return found, true, err
		}
	}
	_, _ = s.tokens.ReadToken()
	return found, true, s.end()
}

// locate returns the only message of a text.
func locate(text []byte) Located {
	s := &scan{text: text, tokens: NewDecoder(text)}
	m, _ := s.message()
	return m
}

// errHead ends the reading of a message.
var errHead = errors.New("the rest is not needed")

// locateHead is locate for the members before the result or error, which can be long. An answer
// whose id follows them gets none.
func locateHead(text []byte) (m Located, isAnswer bool) {
	s := &scan{text: text, tokens: NewDecoder(text), isHead: true}
	m, err := s.message()
	return m, errors.Is(err, errHead)
}

// IsAnswer reports whether a text is a JSON-RPC response, whose method would come first.
func IsAnswer(text []byte) bool {
	m, isAnswer := locateHead(text)
	return isAnswer && !m.IsCall
}

// NewDecoder returns a decoder that reads a text in place, and tolerates duplicate names and
// invalid UTF-8.
func NewDecoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// EachMember reads a value, and calls read for the value of each member of an object.
func EachMember(tokens *jsontext.Decoder, read func(name string) error) error {
	if tokens.PeekKind() != '{' {
		return tokens.SkipValue()
	}
	if _, err := tokens.ReadToken(); err != nil {
		return err
	}
	for tokens.PeekKind() != '}' {
		token, err := tokens.ReadToken()
		if err != nil {
			return err
		}
		if err := read(token.String()); err != nil {
			return err
		}
	}
	_, err := tokens.ReadToken()
	return err
}

// scan reads a text once, from its beginning to its end.
type scan struct {
	text   []byte
	tokens *jsontext.Decoder
	isHead bool // ends before a result or error
}

func (s *scan) end() error {
	switch _, err := s.tokens.ReadToken(); {
	case err == io.EOF: //nolint:errorlint // the decoder does not wrap it
		return nil
	case err != nil:
		return err
	}
	return errors.New("there is data after the message")
}

// start returns the offset of the next value.
func (s *scan) start() int {
	at := int(s.tokens.InputOffset())
	return at + len(s.text[at:]) - len(bytes.TrimLeft(s.text[at:], " \t\r\n,:"))
}

func (s *scan) message() (m Located, err error) {
	m.Text.from, m.isObject = s.start(), s.tokens.PeekKind() == '{'
	err = EachMember(s.tokens, func(name string) error { return s.member(&m, name) })
	m.Text.to = max(m.Text.from, int(s.tokens.InputOffset()))
	return m, err
}

func (s *scan) member(m *Located, name string) error {
	read := readMember([]byte(name))
	if read.isVariantOf(idMember) {
		m.ids++
	}
	m.hasMethod = m.hasMethod || read.isVariantOf(methodMember)
	switch name {
	case "jsonrpc":
		return s.value(&m.Version)
	case "id":
		return s.value(&m.ID)
	case "method":
		return s.method(m)
	case "params":
		m.Params.from = s.start()
		err := EachMember(s.tokens, func(name string) error { return s.parameter(m, name) })
		m.Params.to = max(m.Params.from, int(s.tokens.InputOffset()))
		return err
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
	return s.tokens.SkipValue()
}

var idMember, methodMember = readMember([]byte("id")), readMember([]byte("method"))

func (s *scan) method(m *Located) error {
	m.IsCall = s.tokens.PeekKind() != 'n'
	method, _, err := s.string()
	m.Method, m.methods = method, append(m.methods, method)
	return err
}

func (s *scan) parameter(m *Located, name string) error {
	switch name {
	case "name":
		name, isString, err := s.string()
		if isString {
			m.Names = append(m.Names, name)
		}
		return err
	case "uri":
		uri, isString, err := s.string()
		if isString {
			m.URI = uri
		}
		return err
	case "arguments":
		return s.value(&m.Arguments)
	case "requestId":
		return s.value(&m.RequestID)
	case "progressToken":
		return s.value(&m.Progress)
	case "_meta":
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
	return s.tokens.SkipValue()
}

// string reads a value, and returns a copy of it if it is a string.
func (s *scan) string() (text string, isString bool, err error) {
	if s.tokens.PeekKind() != '"' {
		return "", false, s.tokens.SkipValue()
	}
	token, err := s.tokens.ReadToken()
	if err != nil {
		return "", false, err
	}
	return token.String(), true, nil
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
