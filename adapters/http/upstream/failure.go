package upstream

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/outbound"
)

// Failure is the error of an upstream without a usable response (U9, U10). Its text is for clients and contains nothing of the upstream; its cause is
// for the log.
type Failure struct {
	Status int // of the response to the client: 502, 503 or 504
	Rule   string
	text   string
	cause  error
}

func failed(status int, text string, cause error) error {
	return &Failure{status, "U9", "The MCP server behind this gateway " + text, cause}
}

func (f *Failure) Error() string { return f.text }

// Unwrap returns the cause, for the log.
func (f *Failure) Unwrap() error { return f.cause }

// HTTPStatus returns the status of the response to the client.
func (f *Failure) HTTPStatus() int { return f.Status }

// BrokenRule returns the number of the rule.
func (f *Failure) BrokenRule() string { return f.Rule }

// statusFor keeps 503 and 504, which allow a retry; any other status becomes 502.
func statusFor(upstream int) int {
	if upstream == http.StatusServiceUnavailable || upstream == http.StatusGatewayTimeout {
		return upstream
	}
	return http.StatusBadGateway
}

const (
	maxErrorBody     = 64 << 10
	errorBodyTimeout = 2 * time.Second
)

// isJSONRPCError reports whether an error response is a JSON-RPC error, which is passed to the client. Any other body may reveal internals of the
// upstream.
func isJSONRPCError(answer *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if mediaType != "application/json" {
		return false
	}
	body, complete := peek(answer)
	var message struct {
		Version string          `json:"jsonrpc"`
		Error   json.RawMessage `json:"error"`
	}
	return complete && json.Unmarshal(body, &message) == nil && message.Version == "2.0" && message.Error != nil
}

// refusesHost reports whether the upstream refused the Host header. It reads the body of a 403 only.
func refusesHost(answer *http.Response) bool {
	if answer.StatusCode != http.StatusForbidden || isEventStream(answer.Header) {
		return outbound.RefusesHost(answer.StatusCode, nil)
	}
	body, _ := peek(answer)
	return outbound.RefusesHost(answer.StatusCode, body)
}

// peek reads the body of an error within limits of time and size. The response keeps the body, so that it can still be passed back.
func peek(answer *http.Response) (body []byte, complete bool) {
	if r, ok := answer.Body.(*responseBody); ok {
		defer time.AfterFunc(errorBodyTimeout, func() { r.cancel(nil) }).Stop()
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody+1))
	answer.Body = peekedBody{io.MultiReader(bytes.NewReader(body), answer.Body), answer.Body}
	return body, err == nil && len(body) <= maxErrorBody
}

// peekedBody is a body with a part that was read already.
type peekedBody struct {
	io.Reader
	io.Closer
}

const eventStream = "text/event-stream"

func isEventStream(header http.Header) bool {
	return strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), eventStream)
}
