package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is a request of a message, as the audit describes it.
type Request struct {
	Method    string
	Name      string // of the tool or prompt
	Arguments []byte // canonical (RFC 8785); nil for none
}

// Requests returns the requests in a body that Peek or ReadStrict has accepted, read as the SDK
// reads them. Notifications and responses are none.
func Requests(body []byte) (found []Request) {
	elements := []json.RawMessage{body}
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		elements = nil
		decodeIfAny(body, &elements)
	}
	for _, element := range elements {
		var message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if decode(element, &message) == nil && message.Method != "" && len(message.ID) > 0 &&
			string(message.ID) != "null" {
			found = append(found, newRequest(message.Method, message.Params))
		}
	}
	return found
}

func newRequest(method string, raw []byte) Request {
	request := Request{Method: strings.Clone(method)}
	var params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		Arguments json.RawMessage `json:"arguments"`
	}
	switch method {
	case "tools/call", "prompts/get":
		decodeIfAny(raw, &params)
		request.Name, request.Arguments = strings.Clone(params.Name), Canonical(params.Arguments)
	case "resources/read":
		decodeIfAny(raw, &params)
		request.Arguments = ResourceArguments(params.URI)
	}
	return request
}

// ResourceArguments returns the canonical arguments of resources/read. The URI counts as an
// argument and not as a name, because it may hold a secret.
func ResourceArguments(uri string) []byte {
	raw, _ := json.Marshal(map[string]string{"uri": uri}) // strings always encode
	return Canonical(raw)
}

// Canonical returns a JSON value in the canonical form of RFC 8785, and nil for none. Duplicate
// names and invalid UTF-8 are kept, so that the digest of a value that the MCP server accepts
// always exists.
func Canonical(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	value := jsontext.Value(bytes.Clone(raw))
	if value.Canonicalize(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	return value
}
