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

// Failure is why the upstream gave no answer that could be passed on (U9, U10). Its text is fixed and fit for clients; its cause is
// for the operator.
type Failure struct {
	Status int // for the client: 502, 503 or 504
	Rule   string
	text   string
	cause  error
}

func failed(status int, how string, cause error) error {
	return &Failure{status, "U9", "The MCP server behind this gateway " + how, cause}
}

func (f *Failure) Error() string { return f.text }

// Unwrap returns what the operator has to know.
func (f *Failure) Unwrap() error { return f.cause }

// HTTPStatus returns the status that the client gets.
func (f *Failure) HTTPStatus() int { return f.Status }

// BrokenRule returns the rule of the catalogue.
func (f *Failure) BrokenRule() string { return f.Rule }

// statusFor keeps what says that another try may help.
func statusFor(upstream int) int {
	if upstream == http.StatusServiceUnavailable || upstream == http.StatusGatewayTimeout {
		return upstream
	}
	return http.StatusBadGateway
}

const (
	explanationBytes = 64 << 10
	explanationLimit = 2 * time.Second
)

// saysWhy reports whether a failure is a JSON-RPC error already, which clients understand better than ours. Anything else may be a
// page with the upstream's inner life.
func saysWhy(answer *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if mediaType != "application/json" {
		return false
	}
	body, whole := peek(answer)
	var message struct {
		Version string          `json:"jsonrpc"`
		Error   json.RawMessage `json:"error"`
	}
	return whole && json.Unmarshal(body, &message) == nil && message.Version == "2.0" && message.Error != nil
}

// refusesHost reads a body only where it tells one 403 from another.
func refusesHost(answer *http.Response) bool {
	if answer.StatusCode != http.StatusForbidden || isEventStream(answer.Header) {
		return outbound.RefusesHost(answer.StatusCode, nil)
	}
	body, _ := peek(answer)
	return outbound.RefusesHost(answer.StatusCode, body)
}

// peek reads the body of an error within a limit of time and size. If the body is whole, the answer can still be passed on.
func peek(answer *http.Response) (body []byte, whole bool) {
	if kept, ok := answer.Body.(*ending); ok {
		defer time.AfterFunc(explanationLimit, func() { kept.free(nil) }).Stop()
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, explanationBytes+1))
	answer.Body = replaced{io.MultiReader(bytes.NewReader(body), answer.Body), answer.Body}
	return body, err == nil && len(body) <= explanationBytes
}

// replaced is a body that was read already.
type replaced struct {
	io.Reader
	io.Closer
}

const eventStream = "text/event-stream"

func isEventStream(header http.Header) bool {
	return strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), eventStream)
}
