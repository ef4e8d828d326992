package message

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The members for which a parser that ignores case could take another spelling.
var (
	ofMessage = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	ofParams  = []string{"name", "arguments", "uri", "ref", "notifications", "requestId", "taskId",
		"progressToken", "_meta"}
	ofRef    = []string{"type", "name", "uri"}
	ofListen = []string{"resourceSubscriptions"}
)

// maxBatch is the maximum number of messages in a batch. Only revision 2025-03-26 has batches, and
// its clients send a few messages in each. The response could be many times as long.
const maxBatch = 100

// maxMembers is the maximum number of members of an object that is decoded: a message, params or
// _meta, but not the arguments of a tool. Each member takes many times the memory of its text.
const maxMembers = 1000

// Decode returns the message in a text, or those of a batch. It refuses duplicate names, another
// spelling of a name that MCP has, a value of another type than JSON-RPC and MCP allow, and data
// after the message. It writes spaces in the place of line ends between values, so that a message
// can be sent in one line. Values with unpaired surrogates pass, because clients cut texts.
func Decode(text []byte) (messages []Message, isBatch bool, err error) {
	d := newDecoder(text, false)
	if messages, isBatch, err = d.messages(); err != nil {
		return nil, isBatch, refusalOf(err)
	}
	for i, b := range text { // a string has no such bytes
		if b == '\r' || b == '\n' {
			text[i] = ' '
		}
	}
	return messages, isBatch, nil
}

// DecodeOnly returns the only message in a text, the zero value for a batch and for a text that
// Decode refuses.
func DecodeOnly(text []byte) Message {
	found, isBatch, err := Decode(bytes.TrimPrefix(text, ByteOrderMark))
	if err != nil || isBatch {
		return Message{}
	}
	return found[0]
}

// DecodeObject returns the members of an object as strictly as Decode, none of which may be another
// spelling of a known name.
func DecodeObject(text jsontext.Value, known ...string) (found Members, err error) {
	d := newDecoder(text, false)
	err = d.members("the value", known, func(name string) error {
		value, err := d.value()
		found = append(found, Member{name, value})
		return err
	})
	return found, err
}

// DecodeString returns the value of a string, and false for any other value, or one that parsers
// read differently.
func DecodeString(value jsontext.Value) (string, bool) {
	if value.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// decoder reads a text once, from its beginning to its end.
type decoder struct {
	text      []byte
	tokens    *jsontext.Decoder
	isLenient bool // takes the last of duplicate names, and any other value and spelling
}

func newDecoder(text []byte, isLenient bool) *decoder {
	inPlace := bytes.NewBuffer(text)
	tokens := jsontext.NewDecoder(inPlace, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(isLenient))
	return &decoder{text, tokens, isLenient}
}

// decodeAnyway returns what can be read of a text that Decode refuses.
func decodeAnyway(text []byte) (messages []Message, isBatch bool) {
	messages, isBatch, err := newDecoder(text, true).messages()
	if err != nil {
		return nil, isBatch
	}
	return messages, isBatch
}

// messages returns the messages of the text. Of a single message that it refuses, it returns the
// part before the mistake, which RefuseAnswers needs.
func (d *decoder) messages() (found []Message, isBatch bool, err error) {
	if isBatch = d.tokens.PeekKind() == '['; !isBatch {
		m, err := d.message()
		if err == nil {
			err = d.end()
		}
		return []Message{m}, false, err
	}
	_, _ = d.tokens.ReadToken()
	for d.tokens.PeekKind() != ']' {
		if len(found) == maxBatch {
			return nil, true, tooMany("the batch has more than %d messages", maxBatch)
		}
		m, err := d.message()
		if err != nil {
			return nil, true, err
		}
		found = append(found, m)
	}
	_, _ = d.tokens.ReadToken()
	if len(found) == 0 && !d.isLenient {
		return nil, true, d.errorf("the batch is empty")
	}
	return found, true, d.end()
}

func (d *decoder) end() error {
	switch _, err := d.tokens.ReadToken(); {
	case err == io.EOF: //nolint:errorlint // the decoder does not wrap it
		return nil
	case err != nil:
		return err
	}
	return d.errorf("there is data after the message")
}

func (d *decoder) message() (m Message, err error) {
	var version jsontext.Value
	hasMethod := false
	err = d.members("the message", ofMessage, func(name string) (err error) {
		var value jsontext.Value
		if name == "params" {
			return d.params(&m)
		}
		if value, err = d.value(); err != nil {
			return err
		}
		switch name {
		case "jsonrpc":
			version = value
		case "id":
			m.ID, err = ParseID(value)
		case "method":
			hasMethod = value.Kind() != 'n'
			m.Method, _ = DecodeString(value)
		case "result":
			m.Result = value
		case "error":
			m.Error = value
		}
		return err
	})
	if m.Error.Kind() == 'n' { // some serializers write every member
		m.Error = nil
	}
	if m.Result.Kind() == 'n' && (hasMethod || m.Error != nil) {
		m.Result = nil
	}
	switch {
	case err != nil || d.isLenient:
		return m, err
	case string(version) != `"2.0"`:
		return m, d.errorf(`jsonrpc is not "2.0"`)
	case hasMethod && !methodName.MatchString(m.Method):
		return m, d.errorf("method is not a string of 1 to 256 of the characters A-Z a-z 0-9 _ $ . / : -")
	case hasMethod && (m.Result != nil || m.Error != nil), m.Result != nil && m.Error != nil:
		return m, d.errorf("the message has more than one of method, result and error")
	case m.Error != nil && m.Error.Kind() != '{':
		return m, d.errorf("error is not an object")
	case !hasMethod && m.Result == nil && m.Error == nil, m.Result != nil && m.ID.IsZero():
		return m, d.errorf("the message is neither a request nor a response")
	}
	return m, nil
}

// methodName matches the methods of MCP and of its extensions.
var methodName = regexp.MustCompile(`^[A-Za-z0-9_$./:-]{1,256}$`)

func (d *decoder) params(m *Message) error {
	if d.tokens.PeekKind() == 'n' {
		return d.tokens.SkipValue()
	}
	m.Params, m.Meta = Members{}, nil
	return d.members("params", ofParams, func(name string) error {
		if name != "_meta" {
			value, err := d.value()
			m.Params = append(m.Params, Member{name, value})
			return err
		}
		if d.tokens.PeekKind() == 'n' {
			return d.tokens.SkipValue()
		}
		m.Meta = Members{}
		return d.members("_meta", nil, func(name string) error {
			value, err := d.value()
			m.Meta = append(m.Meta, Member{name, value})
			return err
		})
	})
}

// members reads an object, and calls read for the value of each member.
func (d *decoder) members(of string, known []string, read func(name string) error) error {
	switch kind := d.tokens.PeekKind(); {
	case kind != '{' && kind != 0 && d.isLenient:
		return d.tokens.SkipValue()
	case kind != '{' && kind != 0: // 0 is a syntax error, which the next read returns
		return d.errorf("%s is not an object", of)
	}
	_, err := d.tokens.ReadToken()
	for n := 0; err == nil && d.tokens.PeekKind() != '}'; n++ {
		if n == maxMembers {
			return tooMany("an object has more than %d members", maxMembers)
		}
		var token jsontext.Token
		if token, err = d.tokens.ReadToken(); err != nil {
			return err
		}
		name := token.String()
		isOther := func(exact string) bool { return name != exact && strings.EqualFold(name, exact) }
		switch at := slices.IndexFunc(known, isOther); {
		case d.isLenient:
		case at >= 0:
			return d.errorf("a member name is another spelling of %s", known[at])
		case name == "__proto__":
			return d.errorf("a member is named __proto__, which replaces all members in JavaScript")
		}
		err = read(name)
	}
	if err == nil {
		_, err = d.tokens.ReadToken()
	}
	return err
}

func (d *decoder) value() (jsontext.Value, error) {
	value, err := d.tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.tokens.InputOffset()) // value itself is valid only until the next read
	return d.text[end-len(value) : end : end], nil
}

func (d *decoder) errorf(format string, of ...any) error {
	return &messageError{
		code: sdk.CodeInvalidRequest,
		text: fmt.Sprintf(format, of...) + fmt.Sprintf(" (at byte %d)", d.tokens.InputOffset()),
	}
}
