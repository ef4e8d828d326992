// Package message reads and writes the JSON-RPC messages of MCP.
//
// Decode reads strictly: it refuses a text that JSON parsers could read in different ways. A
// message goes on as Encode writes it, to a server of the SDK, to a program and over HTTP, so that
// every parser finds in it what was found here. Read does the same for the body of a POST. Refuse
// describes a refused one; if it answered requests of the server, those get errors.
package message

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Message is a JSON-RPC message. Its values are parts of the text that was decoded.
type Message struct {
	ID     ID
	Method string         // "" for a response
	Params Members        // without Meta; nil for none
	Meta   Members        // of the params; nil for none
	Result jsontext.Value // nil for none
	Error  jsontext.Value // nil for none
}

// IsCall reports whether the message is a request, which gets a response.
func (m Message) IsCall() bool { return m.Method != "" && !m.ID.IsZero() }

// IsResponse reports whether the message is the response to a request.
func (m Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// IsStateless reports whether the message names its revision, as those of FirstStateless do.
func (m Message) IsStateless() bool {
	return m.Method != "" && m.Meta.Get("io.modelcontextprotocol/protocolVersion") != nil
}

// Encode returns the text of the message.
func (m Message) Encode() []byte {
	text := []byte(`{"jsonrpc":"2.0"`)
	if !m.ID.IsZero() {
		text = append(append(text, `,"id":`...), m.ID.Text...)
	}
	if m.Method != "" {
		text = appendQuoted(append(text, `,"method":`...), m.Method)
	}
	if m.Params != nil || m.Meta != nil {
		params := m.Params
		if m.Meta != nil {
			params = append(Members{{"_meta", m.Meta.appendTo(nil)}}, params...)
		}
		text = params.appendTo(append(text, `,"params":`...))
	}
	if m.Result != nil {
		text = append(append(text, `,"result":`...), m.Result...)
	}
	if m.Error != nil {
		text = append(append(text, `,"error":`...), m.Error...)
	}
	return append(text, '}')
}

// Member is a member of an object, with its value as it was written.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Members are the members of an object. No two have the same name.
type Members []Member

// Get returns the value of a member, nil for none.
func (m Members) Get(name string) jsontext.Value {
	for _, one := range m {
		if one.Name == name {
			return one.Value
		}
	}
	return nil
}

// With returns the members with another value of one of them, as JSON text. It adds none.
func (m Members) With(name, value string) Members {
	changed := slices.Clone(m)
	for i := range changed {
		if changed[i].Name == name {
			changed[i].Value = jsontext.Value(value)
		}
	}
	return changed
}

// Encode returns the text of the object.
func (m Members) Encode() []byte { return m.appendTo(nil) }

func (m Members) appendTo(text []byte) []byte {
	text = append(text, '{')
	for i, one := range m {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(appendQuoted(text, one.Name), ':'), one.Value...)
	}
	return append(text, '}')
}

// appendQuoted writes U+FFFD for an unpaired surrogate, as Decode reads it in a name.
func appendQuoted(text []byte, name string) []byte {
	text, _ = jsontext.AppendQuote(text, name)
	return text
}

// Canonical returns a JSON value in the canonical form of RFC 8785, nil for none and for an invalid
// one.
func Canonical(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	value := jsontext.Value(slices.Clone(raw))
	if value.Canonicalize(jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	return value
}

// Codes in the range of JSON-RPC for errors of servers.
const (
	CodeUnavailable = -32000
	CodeRefused     = -32001
)

// WriteError answers with a JSON-RPC error without an id.
func WriteError(w http.ResponseWriter, status int, text string) {
	WriteErrorFor(w, status, ID{}, sdk.CodeInvalidRequest, text)
}

// WriteErrorFor answers with a JSON-RPC error for the request with that id.
func WriteErrorFor(w http.ResponseWriter, status int, id ID, code int64, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(ErrorFor(id, code, text).Encode())
}

// ErrorFor returns a JSON-RPC error response.
func ErrorFor(id ID, code int64, text string) Message {
	return ErrorResponse(id, &sdk.Error{Code: code, Message: text})
}

// ErrorResponse returns a JSON-RPC error response. Without an id it has none, because MCP's schema
// does not allow null.
func ErrorResponse(id ID, failure *sdk.Error) Message {
	body, _ := json.Marshal(failure) // strings, numbers and valid JSON always encode
	return Message{ID: id, Error: body}
}

// Headers of MCP and of its streams.
const (
	SessionHeader   = "Mcp-Session-Id"
	VersionHeader   = "Mcp-Protocol-Version"
	MethodHeader    = "Mcp-Method" // repeats the method of the body, as the next one its name
	nameHeader      = "Mcp-Name"
	LastEventHeader = "Last-Event-Id"
)

// FirstStateless is the first revision of MCP without sessions.
const FirstStateless = "2026-07-28"

// checkHeaders refuses headers that name another method, tool, prompt or resource than the body. A
// name without one in the body is ignored.
func (b Body) checkHeaders(header http.Header) error {
	methods, names := header.Values(MethodHeader), header.Values(nameHeader)
	if len(methods) > 1 || len(methods) == 1 && methods[0] != b.Only().Method {
		return mismatch(MethodHeader, "method")
	}
	own, isNamed := b.name()
	if len(names) > 1 || len(names) == 1 && isNamed && decodedName(names[0]) != own {
		return mismatch(nameHeader, "name")
	}
	return nil
}

// name returns the name that the headers of the only message may repeat. That of a task is its id.
func (b Body) name() (name string, ok bool) {
	var names []string
	switch m := b.Only(); m.Method {
	case "tasks/get", "tasks/update", "tasks/cancel", "tasks/result":
		return DecodeString(m.Params.Get("taskId"))
	case "tools/call":
		names = b.Names.Tools
	case "prompts/get":
		names = b.Names.Prompts
	case "resources/read":
		names = b.Names.Resources
	}
	if len(names) == 0 {
		return "", false
	}
	return names[0], true
}

// SetHeaders replaces the name header, if there is one, by our own encoding of the name in the
// body. It removes a method header without a body to repeat.
func (b Body) SetHeaders(header http.Header) {
	if len(b.Messages) == 0 {
		header.Del(MethodHeader)
	}
	if header.Get(nameHeader) == "" {
		return
	}
	header.Del(nameHeader)
	name, ok := b.name()
	switch {
	case !ok:
	case plainName.MatchString(name):
		header.Set(nameHeader, name)
	default:
		header.Set(nameHeader, encodedPrefix+base64.StdEncoding.EncodeToString([]byte(name))+encodedSuffix)
	}
}

// plainName matches a name that a header can have as it is. "=" begins an encoded one.
var plainName = regexp.MustCompile(`^[!-<>-~](?:[ -~]*[!-~])?$`)

func mismatch(header, member string) error {
	return &messageError{code: mcp.CodeHeaderMismatch, text: header + " differs from the " + member + " in the body"}
}

// DecodeNameHeader decodes the name header, because the SDK compares it without decoding it.
func DecodeNameHeader(header http.Header) {
	if name := header.Get(nameHeader); name != "" {
		header.Set(nameHeader, decodedName(name))
	}
}

// encodedPrefix begins a name with characters that a header does not allow.
const encodedPrefix, encodedSuffix = "=?base64?", "?="

func decodedName(value string) string {
	encoded, isPrefixed := strings.CutPrefix(value, encodedPrefix)
	encoded, isSuffixed := strings.CutSuffix(encoded, encodedSuffix)
	name, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !isPrefixed || !isSuffixed || err != nil {
		return value
	}
	return string(name)
}
