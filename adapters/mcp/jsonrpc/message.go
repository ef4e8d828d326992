// Package jsonrpc reads the JSON-RPC message in the body of a POST to an MCP endpoint, before the
// MCP server behind the guard reads it.
//
// ReadBody reads the bytes within limits. Scan locates the messages in them. Peek finds all that
// the Go SDK could read. ReadStrict is for a server with another parser: it accepts only a body in
// which every JSON parser finds the same calls. Both return a Message. Refuse describes a refused
// message, with errors for the requests of the server that wait for it.
package jsonrpc

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// Peek parses a body with case-sensitive names, as the SDK does. Of duplicate names it finds all,
// and the SDK one. encoding/json would read {"name":"write","Name":"read"} as a call of read, and
// the SDK would then run write.
func Peek(body []byte) (Message, error) {
	m := Message{Body: body}
	if tooDeep(body) {
		return m, nil
	}
	found, batch, err := Scan(body, maxBatch)
	for i := range found {
		m.add(&found[i], body)
	}
	switch {
	case errors.Is(err, ErrManyMessages):
		return m, errLongBatch
	case err != nil: // the SDK refuses it, but could read a name where our reader stops
		m.Decoded = false
	case !batch && found[0].ID.to > 0:
		m.ID = found[0].ID.Of(body)
	}
	return m, m.checkLengths()
}

func (m *Message) add(found *Located, body []byte) {
	m.Decoded = m.Decoded || found.isObject
	m.HasResponse = m.HasResponse || !found.IsCall && len(found.ID.Of(body)) > 0
	m.Stateless = m.Stateless || found.Revision.to > 0
	for _, method := range found.methods {
		m.longMethod = m.longMethod || len(method) > maxMethod
	}
	m.addMethods(found.methods, found.Names)
}

// addMethods adds the methods of one message, and the names of tools that it may call. A call
// without a name has an empty one.
func (m *Message) addMethods(methods, names []string) {
	m.Initialize = m.Initialize || slices.Contains(methods, "initialize")
	m.Listen = m.Listen || slices.Contains(methods, "subscriptions/listen")
	if !slices.ContainsFunc(methods, func(method string) bool { return strings.HasPrefix(method, toolMethods) }) {
		return
	}
	named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if (len(named) < len(names) || len(names) == 0) && slices.Contains(methods, "tools/call") {
		named = append(named, "")
	}
	m.Tools = append(m.Tools, named...)
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
