package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	segjson "github.com/segmentio/encoding/json"
)

// message is a JSON-RPC message. Its text is passed on, so that nothing in it changes. The other fields with JSON are parts of the text, not copies.
type message struct {
	raw       []byte // in one line
	id        callID // the zero value for a notification
	isRequest bool   // or notification
	method    string
	params    json.RawMessage
	result    json.RawMessage
	isError   bool
}

var (
	errNoMessage = errors.New("the body is not a JSON-RPC message")
	errLongID    = errors.New("the id of a message is too long: choose one of at most 1 KiB")
)

// parse returns the messages of a body or line: one, or those of a batch. It replaces the ends of lines between the parts of JSON by spaces.
func parse(body []byte) (messages []message, err error) {
	if !json.Valid(body) {
		return nil, errNoMessage
	}
	for i, b := range body { // a string of valid JSON has no such bytes
		if b == '\r' || b == '\n' {
			body[i] = ' '
		}
	}
	body = bytes.Trim(body, " \t")
	elements := []json.RawMessage{body}
	if body[0] == '[' {
		elements = nil
		if _, err := segjson.Parse(body, &elements, segjson.DontCopyRawMessage); err != nil || len(elements) == 0 {
			return nil, errNoMessage
		}
	}
	for _, element := range elements {
		m, err := parseOne(element)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// parseOne returns the message of a valid JSON text.
func parseOne(text []byte) (message, error) {
	var wire struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if _, err := segjson.Parse(text, &wire, segjson.DontCopyRawMessage|segjson.DontMatchCaseInsensitiveStructFields); err != nil || wire.Version != "2.0" {
		return message{}, errNoMessage
	}
	id, err := parseID(wire.ID)
	m := message{raw: text[:len(text):len(text)], id: id, params: wire.Params, result: wire.Result, isError: isPresent(wire.Error)}
	if wire.Method != nil {
		m.isRequest, m.method = true, *wire.Method
	} else if err == nil && id.isZero() {
		err = errNoMessage
	}
	return m, err
}

func isPresent(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

// callID is the id of a call.
type callID struct {
	text string // as the client has written it; "" for no id
	key  string // equal for two spellings of one id
}

const maxID = 1 << 10

// maxExact is the first number that not all programs can tell from the next.
const maxExact = 1 << 53

// parseID returns the id of a message. It keeps fractions and large numbers, which the types of the SDK do not.
func parseID(text json.RawMessage) (callID, error) {
	switch {
	case !isPresent(text):
		return callID{}, nil
	case len(text) > maxID:
		return callID{}, errLongID
	}
	id := callID{text: string(text), key: string(text)}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return callID{}, errNoMessage
	}
	switch value := value.(type) {
	case string:
		id.key = `"` + value
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < maxExact {
			id.key = strconv.FormatInt(int64(value), 10)
		}
	default:
		return callID{}, errNoMessage
	}
	return id, nil
}

func (id callID) isZero() bool { return id.text == "" }

func (m message) isCall() bool { return m.isRequest && !m.id.isZero() }

func (m message) isResponse() bool { return !m.isRequest }

func (m message) isInitialize() bool { return m.isCall() && m.method == "initialize" }

// parameters are those that a session looks at.
type parameters struct {
	Meta struct {
		Progress json.RawMessage `json:"progressToken"`
		Revision json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"`
	} `json:"_meta"`
	Progress  json.RawMessage `json:"progressToken"`
	RequestID json.RawMessage `json:"requestId"`
}

func (m message) parameters() (p parameters) {
	if m.isRequest && len(m.params) > 0 {
		_ = json.Unmarshal(m.params, &p) // the program refuses params that it cannot read
	}
	return p
}

// isStateless reports whether the message names its revision, as 2026-07-28 does.
func (m message) isStateless() bool { return m.parameters().Meta.Revision != nil }

// progressToken returns the progress token of a call, as JSON, "" without one or for one that is too long to keep.
func (m message) progressToken() string {
	if token := m.parameters().Meta.Progress; len(token) <= maxID {
		return string(token)
	}
	return ""
}

// cancels returns the id of the request that the message cancels.
func (m message) cancels() (callID, bool) {
	if !m.isRequest || m.method != "notifications/cancelled" {
		return callID{}, false
	}
	id, err := parseID(m.parameters().RequestID)
	return id, err == nil && !id.isZero()
}
