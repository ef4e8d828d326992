package jsonrpc

import (
	"encoding/base64"
	"mime"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// ReadStrict reads a message, and refuses one that the upstream could read differently.
func ReadStrict(header http.Header, body []byte) (Message, error) {
	if !isJSON(header.Get("Content-Type")) {
		return Message{Body: body},
			&messageError{status: http.StatusUnsupportedMediaType, code: sdk.CodeInvalidRequest,
				text: "send application/json"}
	}
	m, err := readStrict(body)
	if err != nil {
		return m, err
	}
	return m, m.addHeaderNames(header)
}

func isJSON(contentType string) bool {
	const wanted = "application/json"
	if contentType == wanted {
		return true
	}
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(parameters["charset"])
	return err == nil && mediaType == wanted && (charset == "" || charset == "utf-8" || charset == "utf8")
}

// addHeaderNames adds the names of tools, prompts or resources in the headers of a request, because
// an upstream may use those and not the body.
func (m *Message) addHeaderNames(header http.Header) error {
	methods := header.Values(MethodHeader)
	for _, method := range methods {
		if len(method) > maxMethod {
			return longError(MethodHeader, maxMethod)
		}
		if exact := variantOfMethod(method); exact != "" {
			return &messageError{code: mcp.CodeHeaderMismatch, text: MethodHeader + " is another spelling of " + exact}
		}
	}
	for _, kind := range []struct {
		methods string
		names   *[]string
	}{{toolMethods, &m.Tools}, {promptMethods, &m.Prompts}, {resourceMethods, &m.Resources}} {
		if m.mayName(kind.methods, methods) {
			names, err := namesIn(header)
			if err != nil {
				return err
			}
			m.HeaderMismatch = m.HeaderMismatch || m.Stateless && slices.ContainsFunc(names, func(name string) bool {
				return !slices.Contains(*kind.names, name)
			})
			*kind.names = append(*kind.names, names...)
		}
		*kind.names = withVariants(*kind.names)
	}
	return nil
}

// ErrHeaderMismatch is the reason for refusing a message whose header has another name than its
// body.
var ErrHeaderMismatch error = &messageError{
	code: mcp.CodeHeaderMismatch,
	text: nameHeader + " differs from the name in the body",
}

// mayName reports whether an upstream could take a name in the headers for one of the methods
// with that beginning: by the method in the body, or by those in the headers, of which it could
// read a list or an encoded one.
func (m *Message) mayName(beginning string, inHeaders []string) bool {
	return len(inHeaders) > 1 || slices.ContainsFunc(inHeaders, func(method string) bool {
		return strings.HasPrefix(method, beginning) || strings.ContainsAny(method, ",=? ")
	}) || slices.ContainsFunc(m.methods, func(method string) bool {
		return strings.HasPrefix(method, beginning) || beginning != toolMethods && refers(method)
	})
}

// namesIn decodes the names in headers.
func namesIn(header http.Header) (names []string, err error) {
	for _, value := range header.Values(nameHeader) {
		name := decodedName(value)
		if Length(name, MaxURI) > MaxURI {
			return nil, longError(nameHeader, MaxURI)
		}
		// Decoders skip different characters.
		if name == value && strings.HasPrefix(strings.ToLower(value), encodedPrefix) {
			return nil, &messageError{code: mcp.CodeHeaderMismatch, text: nameHeader + " is not valid base64"}
		}
		names = append(names, name)
	}
	return names, nil
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
