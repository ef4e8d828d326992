package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	segjson "github.com/segmentio/encoding/json"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// message is a JSON-RPC message. Its text is passed on, so that nothing in it changes. The other
// fields with JSON are parts of the text, not copies.
type message struct {
	raw       []byte     // in one line
	id        jsonrpc.ID // the zero value for a notification
	number    int64      // of a call, in place of its id
	isRequest bool       // or notification
	method    string
	params    json.RawMessage
	result    json.RawMessage
	isError   bool
}

var errNoMessage = errors.New("the body is not a JSON-RPC message")

// parse returns the messages of a body or line: one, or those of a batch. It replaces the ends of
// lines between the parts of JSON by spaces.
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
	if _, err := segjson.Parse(text, &wire,
		segjson.DontCopyRawMessage|segjson.DontMatchCaseInsensitiveStructFields); err != nil || wire.Version != "2.0" {
		return message{}, errNoMessage
	}
	id, err := jsonrpc.ParseID(wire.ID)
	m := message{
		raw:     text[:len(text):len(text)],
		id:      id,
		params:  wire.Params,
		result:  wire.Result,
		isError: isPresent(wire.Error),
	}
	if wire.Method != nil {
		m.isRequest, m.method = true, *wire.Method
	} else if err == nil && id.IsZero() {
		err = errNoMessage
	}
	return m, err
}

func isPresent(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

func (m message) isCall() bool { return m.isRequest && !m.id.IsZero() }

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

const maxToken = 1 << 10

// progressToken returns the progress token of a call, as JSON, "" without one or for one that is
// too long to keep.
func (m message) progressToken() string {
	if token := m.parameters().Meta.Progress; len(token) <= maxToken {
		return string(token)
	}
	return ""
}

// cancels returns the id of the request that the message cancels.
func (m message) cancels() (jsonrpc.ID, bool) {
	if !m.isRequest || m.method != "notifications/cancelled" {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.ParseID(m.parameters().RequestID)
	return id, err == nil && !id.IsZero()
}

// answers returns the number of the call that the message answers. Some programs answer a number
// with text.
func (m message) answers() (number int64, ok bool) {
	number, err := strconv.ParseInt(strings.TrimPrefix(m.id.Key, `"`), 10, 64)
	return number, err == nil
}

// forProgram returns the parts of a message of the client as the program gets it: with the number
// of a call in place of its id, and with a progress token that no other call has.
func (m message) forProgram() [][]byte {
	if !m.isCall() {
		return [][]byte{m.raw}
	}
	progress := m.progressToken()
	if progress != "" {
		progress = jsonrpc.Numbered(m.number, progress)
	}
	return jsonrpc.WithCall(m.raw, strconv.FormatInt(m.number, 10), progress)
}
