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
	names, err := namesInHeaders(header)
	m.addHeaderNames(names, header.Values(methodHeader))
	return m, err
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

// namesInHeaders returns the names of tools, prompts or resources in the headers of a request.
func namesInHeaders(header http.Header) (names []string, err error) {
	methods := header.Values(methodHeader)
	for _, method := range methods {
		if len(method) > maxMethod {
			return nil, longError(methodHeader, maxMethod)
		}
		if exact := variantOfMethod(method); exact != "" {
			return nil, &messageError{code: mcp.CodeHeaderMismatch, text: methodHeader + " is another spelling of " + exact}
		}
	}
	if !mayCall(methods, toolMethods) && !mayCall(methods, promptMethods) && !mayCall(methods, resourceMethods) {
		return nil, nil
	}
	for _, value := range header.Values(nameHeader) {
		name := decodedName(value)
		if Length(name, MaxURI) > MaxURI {
			return nil, longError(nameHeader, MaxURI)
		}
		if name == value && strings.HasPrefix(strings.ToLower(value), encodedPrefix) { // decoders skip different characters
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
