package jsonrpc

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Headers that repeat what the body of a message contains.
const (
	nameHeader   = "Mcp-Name"
	methodHeader = "Mcp-Method"
)

// ReadStrict refuses what the upstream might read in another way than the guard (U11).
func ReadStrict(header http.Header, body []byte) (Message, error) {
	if !isJSON(header.Get("Content-Type")) {
		return Message{Body: body}, &fault{status: http.StatusUnsupportedMediaType, code: sdk.CodeInvalidRequest, what: "send application/json"}
	}
	m, err := readStrict(body)
	if err != nil {
		return m, err
	}
	tools, err := named(header)
	m.Tools = spellings(append(m.Tools, tools...))
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

// named returns the tools that a request calls by its headers. An upstream that goes by those may not read another name in the body.
func named(header http.Header) (tools []string, err error) {
	methods := header.Values(methodHeader)
	for _, method := range methods {
		if exact := respelledMethod(method); exact != "" {
			return nil, &fault{code: mcp.CodeHeaderMismatch, what: methodHeader + " is another spelling of " + exact}
		}
	}
	if len(methods) == 0 || len(methods) == 1 && callsNoTool(methods[0]) {
		return nil, nil
	}
	for _, value := range header.Values(nameHeader) {
		name := decodedName(value)
		if name == value && strings.HasPrefix(strings.ToLower(value), encodedPrefix) { // decoders differ in what they skip
			return nil, &fault{code: mcp.CodeHeaderMismatch, what: nameHeader + " is not valid base64"}
		}
		tools = append(tools, name)
	}
	return tools, nil
}

// callsNoTool reports that a method can only be read as one that calls no tool. A list of methods, or an encoded one, could be read as
// tools/call.
func callsNoTool(method string) bool {
	return method != "tools/call" && !strings.ContainsAny(method, ",=? ")
}

// DecodeNameHeader reads a name that had to be encoded to fit into a header; the SDK compares it raw.
func DecodeNameHeader(header http.Header) {
	if name := header.Get(nameHeader); name != "" {
		header.Set(nameHeader, decodedName(name))
	}
}

// encodedPrefix begins a name that is not fit for a header as it is.
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
