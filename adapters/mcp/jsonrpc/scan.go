package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
	Names        []string // of the tool or prompt, in all members with that name

	ref           Span   // of completion/complete
	notifications Span   // of subscriptions/listen
	uri           Span   // of a resource, of any type
	variant       string // the member of these of which another member name is another spelling; "" for none

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

// errManyMessages is the error for a batch with more messages than it may have, whose response
// could be many times as long.
var errManyMessages = &messageError{rule: "G19", code: sdk.CodeInvalidRequest,
	text: fmt.Sprintf("the batch has more than %d messages", maxBatch)}

// Scan locates the messages of a body, at most a number of them. It tolerates duplicate names and
// invalid UTF-8. With an error it returns what comes before it.
func Scan(body []byte, limit int) (found []Located, batch bool, err error) {
	return (&scan{text: body, tokens: NewDecoder(body)}).messages(limit)
}

// locate returns the only message of a text.
func locate(text []byte) Located {
	m, _ := (&scan{text: text, tokens: NewDecoder(text)}).message()
	return m
}

// errHead ends the reading of a message.
var errHead = errors.New("the rest is not needed")

// locateHead is locate for the members before the result or error, which can be long. An answer
// whose id follows them gets none.
func locateHead(text []byte) (m Located, isAnswer bool) {
	m, err := (&scan{text: text, tokens: NewDecoder(text), isHead: true}).message()
	return m, errors.Is(err, errHead)
}

// IsAnswer reports whether a text is a JSON-RPC response, whose method would come first.
func IsAnswer(text []byte) bool {
	m, isAnswer := locateHead(text)
	return isAnswer && !m.IsCall
}

// IsError reports whether a text is one JSON-RPC error.
func IsError(text []byte) bool {
	found, batch, err := Scan(text, 1)
	return err == nil && !batch && string(found[0].Version.Of(text)) == `"2.0"` && IsPresent(found[0].Error.Of(text))
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
