package mcp

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

// message is a POST body and what dispatching needs to know of it. The zero value is no body at all.
type message struct {
	body       []byte
	decoded    bool            // at least one JSON-RPC message was read
	modern     bool            // names its revision itself, as 2026-07-28 does
	initialize bool            // opens a session
	listen     bool            // opens a long stream
	id         []byte          // of the only request, as it was sent; nil in a batch, and for what needs no answer
	tools      []string        // that it calls, in every element of a batch
	answers    bool            // an element answers a request of the MCP server
	tooMany    bool            // messages in a batch
	refused    *refusedMessage // nil for a message that is passed on
}

// peek reads a body exactly as the SDK will: with its decoder and case-sensitive names. encoding/json would take
// {"name":"write","Name":"read"} for a call of read, and the SDK would then run write.
func peek(body []byte) message {
	m := message{body: body}
	if tooDeep(body) {
		return m
	}
	var batch []json.RawMessage
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '[' || decode(body, &batch) != nil {
		m.id = m.add(body)
	}
	for _, element := range batch[:min(len(batch), maxBatch)] {
		m.add(element)
	}
	m.tooMany = len(batch) > maxBatch
	return m
}

// add returns the id of a request.
func (m *message) add(raw []byte) (id []byte) {
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
	m.decoded = true
	m.answers = m.answers || seen.request.Method == nil && seen.request.ID != nil
	decodeIfAny(seen.request.Method, &seen.method) // a response has none
	decodeIfAny(seen.request.Params, &seen.params) // what does not fit is not executed either
	m.modern = m.modern || seen.params.Meta.Version != nil
	m.does(seen.method, strings.Clone(seen.params.Name)) // a host that keeps the name of a tool keeps no body
	return seen.request.ID
}

// does takes note of what one request wants.
func (m *message) does(method, name string) {
	switch method {
	case "initialize":
		m.initialize = true
	case "subscriptions/listen":
		m.listen = true
	case "tools/call":
		m.tools = append(m.tools, name)
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
