package jsonrpc

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Headers that repeat parts of the body.
const (
	nameHeader   = "Mcp-Name"
	methodHeader = "Mcp-Method"
)

// ReadStrict reads a message, and refuses one that the upstream could read differently (U11).
func ReadStrict(header http.Header, body []byte) (Message, error) {
	if !isJSON(header.Get("Content-Type")) {
		return Message{Body: body}, &messageError{status: http.StatusUnsupportedMediaType, code: sdk.CodeInvalidRequest, text: "send application/json"}
	}
	m, err := readStrict(body)
	if err != nil {
		return m, err
	}
	tools, err := toolsInHeaders(header)
	m.Tools = withVariants(append(m.Tools, tools...))
	return m, err
}

func isJSON(contentType string) bool {
	const wanted = "application/json"
	if contentType == wanted {
		return true
	}
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	charset := parameters["charset"]
	return err == nil && mediaType == wanted && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// toolsInHeaders returns the tools that the headers of a request name, because an upstream may use those and not the body.
func toolsInHeaders(header http.Header) (tools []string, err error) {
	methods := header.Values(methodHeader)
	for _, method := range methods {
		if exact := variantOfMethod(method); exact != "" {
			return nil, &messageError{code: mcp.CodeHeaderMismatch, text: methodHeader + " is another spelling of " + exact}
		}
	}
	if len(methods) == 0 || len(methods) == 1 && callsNoTool(methods[0]) {
		return nil, nil
	}
	for _, value := range header.Values(nameHeader) {
		name := decodedName(value)
		if name == value && strings.HasPrefix(strings.ToLower(value), encodedPrefix) { // decoders skip different characters
			return nil, &messageError{code: mcp.CodeHeaderMismatch, text: nameHeader + " is not valid base64"}
		}
		tools = append(tools, name)
	}
	return tools, nil
}

// callsNoTool reports whether no upstream could read a method as tools/call. It could so read a list of methods or an encoded one.
func callsNoTool(method string) bool {
	return method != "tools/call" && !strings.ContainsAny(method, ",=? ")
}

// DecodeNameHeader decodes the name header, because the SDK compares it without decoding it.
func DecodeNameHeader(header http.Header) {
	if name := header.Get(nameHeader); name != "" {
		header.Set(nameHeader, decodedName(name))
	}
}

// encodedPrefix begins a name with characters that a header does not allow.
const encodedPrefix = "=?base64?"

func decodedName(value string) string {
	encoded, prefixed := strings.CutPrefix(value, encodedPrefix)
	encoded, suffixed := strings.CutSuffix(encoded, "?=")
	name, err := base64.StdEncoding.DecodeString(encoded)
	if !prefixed || !suffixed || err != nil {
		return value
	}
	return string(name)
}
