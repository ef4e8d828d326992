// Package jsonrpc reads the JSON-RPC message in the body of a POST to an MCP endpoint, before the
// MCP server behind the guard reads it.
//
// ReadBody reads the bytes within limits. Peek parses them exactly as the Go SDK does. ReadStrict
// is for a server with another parser: it accepts only a body in which every JSON parser finds the
// same calls. Both return a Message. Refuse describes a refused message, with errors for the
// requests of the server that wait for it.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	segjson "github.com/segmentio/encoding/json"
)

const (
	maxDepth = 1000 // the SDK refuses deeper nesting
	// maxBatch is the maximum number of messages in a batch. Only revision 2025-03-26 has batches,
	// and its clients send a few messages in each.
	maxBatch = 100
)

// Message is a parsed body of a POST. The zero value is a request without a body.
type Message struct {
	Body        []byte
	Decoded     bool     // at least one JSON-RPC message was read
	Stateless   bool     // names its revision, as 2026-07-28 does
	Initialize  bool     // opens a session
	Listen      bool     // opens a long stream
	ID          []byte   // raw, of the only request; nil in a batch and for a notification
	Tools       []string // that its elements name in methods for tools
	Prompts     []string // that its elements name; only ReadStrict reads them, like Resources
	Resources   []string // URIs, and the templates of completions
	HasResponse bool     // an element answers a request of the MCP server
	Refused     *Refusal // nil for a message that is passed on

	longMethod bool     // of more than maxMethod bytes
	methods    []string // of its elements; only ReadStrict reads them
}

// Peek parses a body exactly as the SDK does: with its decoder and case-sensitive names.
// encoding/json would read {"name":"write","Name":"read"} as a call of read, and the SDK would then
// run write.
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
	return m, m.checkLengths()
}

// add adds an element, and returns the id of a request.
func (m *Message) add(raw []byte) (id []byte) {
	var seen struct { // one struct, to save allocations
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
	m.longMethod = m.longMethod || len(seen.method) > maxMethod
	decodeIfAny(seen.request.Params, &seen.params) // the SDK refuses params that do not decode
	m.Stateless = m.Stateless || seen.params.Meta.Version != nil
	// Clone, or a host that keeps the name would keep the body.
	m.addMethod(seen.method, strings.Clone(seen.params.Name))
	return seen.request.ID
}

func (m *Message) addMethod(method, name string) {
	switch method {
	case "initialize":
		m.Initialize = true
	case "subscriptions/listen":
		m.Listen = true
	}
	if strings.HasPrefix(method, toolMethods) && (name != "" || method == "tools/call") {
		m.Tools = append(m.Tools, name)
	}
}

func decodeIfAny(raw []byte, into any) {
	if len(raw) > 0 {
		_ = decode(raw, into)
	}
}

// decode does not copy strings, because a body is never modified.
func decode(raw []byte, into any) error {
	_, err := segjson.Parse(raw, into, segjson.DontMatchCaseInsensitiveStructFields|segjson.ZeroCopy)
	return err
}

// tooDeep reports whether a body nests deeper than maxDepth, because the decoder is recursive.
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

// CodeRefused is in the range of JSON-RPC for errors of servers.
const CodeRefused = -32001

// WriteError answers with a JSON-RPC error without an id.
func WriteError(w http.ResponseWriter, status int, message string) {
	WriteErrorFor(w, status, nil, sdk.CodeInvalidRequest, message)
}

// WriteErrorFor answers with a JSON-RPC error for the request with that id.
func WriteErrorFor(w http.ResponseWriter, status int, id []byte, code int64, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(ErrorFor(id, code, message))
}

// ErrorFor returns a JSON-RPC error response. Without a valid id it has none, because MCP's schema
// does not allow null.
func ErrorFor(id []byte, code int64, message string) []byte {
	response := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}{Version: "2.0"}
	if json.Valid(id) && string(id) != "null" {
		response.ID = id
	}
	response.Error.Code, response.Error.Message = code, message
	body, _ := json.Marshal(response) // strings, numbers and valid JSON always encode
	return body
}
