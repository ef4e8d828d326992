// Package jsonrpc reads the JSON-RPC message in the body of a POST to an MCP endpoint, before the
// MCP server behind the guard reads it.
//
// ReadBody reads the bytes within limits. Scan locates the messages in them. Peek finds all that
// the Go SDK could read. ReadStrict is for a server with another parser: it accepts only a body in
// which every JSON parser finds the same calls. Both return a Message. Refuse describes a refused
// message, with errors for the requests of the server that wait for it.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
	Body           []byte
	Decoded        bool     // at least one JSON-RPC message was read
	Stateless      bool     // names its revision, as 2026-07-28 does
	Initialize     bool     // opens a session
	Listen         bool     // opens a long stream
	ID             []byte   // raw, of the only request; nil in a batch and for a notification
	Calls          int      // of tools
	Tools          []string // that its elements name in methods for tools
	Arguments      [][]byte // of these elements, empty for none, and of any that an upstream could take for one
	Prompts        []string // that its elements name; only ReadStrict reads them, like Resources
	Resources      []string // URIs, and the templates of completions
	HeaderMismatch bool     // the header has a name that the body does not have; only in a stateless request
	HasResponse    bool     // an element answers a request of the MCP server
	Refused        *Refusal // nil for a message that is passed on

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
	m.addAll(found, batch, err)
	if errors.Is(err, errManyMessages) {
		return m, err
	}
	m.Decoded = m.Decoded && err == nil // the SDK refuses it, but could read a name where our reader stops
	return m, m.checkLengths()
}

// addAll adds what was found before the error.
func (m *Message) addAll(found []Located, batch bool, err error) {
	for i := range found {
		m.add(&found[i], m.Body)
	}
	if err == nil && !batch && found[0].ID.to > 0 {
		m.ID = found[0].ID.Of(m.Body)
	}
}

func (m *Message) add(found *Located, body []byte) {
	m.Decoded = m.Decoded || found.isObject
	m.HasResponse = m.HasResponse || !found.IsCall && len(found.ID.Of(body)) > 0
	m.Stateless = m.Stateless || found.Revision.to > 0
	for _, method := range found.methods {
		m.longMethod = m.longMethod || len(method) > maxMethod
	}
	if m.addMethods(found.methods, found.Names) || found.Arguments.to > 0 {
		m.Arguments = append(m.Arguments, found.Arguments.Of(body))
	}
}

// addMethods adds the methods of one message, and the names of tools that it may call. A call
// without a name has an empty one. It reports whether one of the methods is for tools.
func (m *Message) addMethods(methods, names []string) (isForTools bool) {
	if slices.Contains(methods, "tools/call") {
		m.Calls++
	}
	m.Initialize = m.Initialize || slices.Contains(methods, "initialize")
	m.Listen = m.Listen || slices.Contains(methods, "subscriptions/listen")
	if !slices.ContainsFunc(methods, func(method string) bool { return strings.HasPrefix(method, toolMethods) }) {
		return false
	}
	named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if (len(named) < len(names) || len(names) == 0) && slices.Contains(methods, "tools/call") {
		named = append(named, "")
	}
	m.Tools = append(m.Tools, named...)
	return true
}

// MayList reports whether the response may contain a list of tools. Only ReadStrict knows.
func (m Message) MayList() bool {
	return slices.ContainsFunc(m.methods, func(method string) bool {
		return strings.HasPrefix(method, toolMethods) && method != "tools/call"
	})
}

// Replace returns copies of the message and its request with another body.
func (m Message) Replace(r *http.Request, body []byte) (Message, *http.Request) {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	m.Body = body
	return m, r
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

// ErrorFor returns a JSON-RPC error response.
func ErrorFor(id []byte, code int64, message string) []byte {
	return EncodeError(id, &sdk.Error{Code: code, Message: message})
}

// EncodeError returns a JSON-RPC error response. Without a valid id it has none, because MCP's
// schema does not allow null.
func EncodeError(id []byte, failure *sdk.Error) []byte {
	response := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   *sdk.Error      `json:"error"`
	}{Version: "2.0", Error: failure}
	if json.Valid(id) && string(id) != "null" {
		response.ID = id
	}
	body, _ := json.Marshal(response) // strings, numbers and valid JSON always encode
	return body
}
