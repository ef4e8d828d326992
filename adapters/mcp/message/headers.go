package message

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// SetName replaces the name header, if there is one, by our own encoding of the name in the body.
func (b Body) SetName(header http.Header) {
	if header.Get(nameHeader) == "" {
		return
	}
	header.Del(nameHeader)
	name, ok := b.name()
	switch {
	case !ok:
	case isPlain.MatchString(name):
		header.Set(nameHeader, name)
	default:
		header.Set(nameHeader, encodedPrefix+base64.StdEncoding.EncodeToString([]byte(name))+encodedSuffix)
	}
}

// isPlain matches a name that a header can have as it is.
var isPlain = regexp.MustCompile(`^[!-<>-~](?:[ -~]*[!-~])?$`)

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
