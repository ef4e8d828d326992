package jsonrpc

import (
	"bytes"
	"encoding/json"

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
	messages, _, err := Scan(body, maxBatch)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Method != "" && IsPresent(m.ID.Of(body)) {
			found = append(found, newRequest(&m, body))
		}
	}
	return found
}

func newRequest(m *Located, body []byte) Request {
	request := Request{Method: m.Method}
	switch m.Method {
	case "tools/call", "prompts/get":
		request.Name, request.Arguments = m.name(), Canonical(m.Arguments.Of(body))
	case "resources/read":
		var uri string
		_ = json.Unmarshal(m.uri.Of(body), &uri) // another value is not a URI
		request.Arguments = ResourceArguments(uri)
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
