package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"

	segjson "github.com/segmentio/encoding/json"
)

const (
	maxDepth = 1000 // the SDK refuses what is nested deeper
	// maxBatch is how many messages a batch may have. Only revision 2025-03-26 has batches, whose clients put a handful into one.
	maxBatch = 100
)

// Message is the body of a POST and what dispatching needs to know of it. The zero value is no body at all.
type Message struct {
	Body        []byte
	Decoded     bool     // at least one JSON-RPC message was read
	Stateless   bool     // names its revision itself, as 2026-07-28 does
	Initialize  bool     // opens a session
	Listen      bool     // opens a long stream
	ID          []byte   // of the only request, as it was sent; nil in a batch, and for what needs no answer
	Tools       []string // that it calls, in every element of a batch
	HasResponse bool     // an element answers a request of the MCP server
	Refused     *Refusal // nil for a message that is passed on
}

// Peek reads a body exactly as the SDK will: with its decoder and case-sensitive names. encoding/json would take
// {"name":"write","Name":"read"} for a call of read, and the SDK would then run write.
func Peek(body []byte) (Message, error) {
	m := Message{Body: body}
	if tooDeep(body) {
		return m, nil
	}
	var batch []json.RawMessage
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '[' || decode(body, &batch) != nil {
		m.ID = m.add(body)
	}
	for _, element := range batch[:min(len(batch), maxBatch)] {
		m.add(element)
	}
	if len(batch) > maxBatch {
		return m, errLongBatch
	}
	return m, nil
}

// add returns the id of a request.
func (m *Message) add(raw []byte) (id []byte) {
	var seen struct { // at once, because each would be an allocation of its own
		request struct {
			ID     json.RawMessage `json:"id"`
			Method json.RawMessage `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		method string
		params struct {
			Meta struct {
				Version json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
			Name string `json:"name"`
		}
	}
	if decode(raw, &seen.request) != nil {
		return nil
	}
	m.Decoded = true
	m.HasResponse = m.HasResponse || seen.request.Method == nil && seen.request.ID != nil
	decodeIfAny(seen.request.Method, &seen.method) // a response has none
	decodeIfAny(seen.request.Params, &seen.params) // what does not fit is not executed either
	m.Stateless = m.Stateless || seen.params.Meta.Version != nil
	m.does(seen.method, strings.Clone(seen.params.Name)) // a host that keeps the name of a tool keeps no body
	return seen.request.ID
}

// does takes note of what one request wants.
func (m *Message) does(method, name string) {
	switch method {
	case "initialize":
		m.Initialize = true
	case "subscriptions/listen":
		m.Listen = true
	case "tools/call":
		m.Tools = append(m.Tools, name)
	}
}

func decodeIfAny(raw []byte, into any) {
	if len(raw) > 0 {
		_ = decode(raw, into)
	}
}

// decode copies nothing, because nobody writes into a body.
func decode(raw []byte, into any) error {
	_, err := segjson.Parse(raw, into, segjson.DontMatchCaseInsensitiveStructFields|segjson.ZeroCopy)
	return err
}

// tooDeep keeps the recursive decoder away from bodies that are nothing but brackets.
func tooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}
