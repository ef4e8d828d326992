// Package audit describes the calls of an MCP server, so that operators can show who called what. A
// Call is one JSON-RPC request of an authenticated caller, with its outcome.
package audit

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// Outcome is how a call ended.
type Outcome string

const (
	OK         Outcome = "ok"         // the MCP server returned a result
	Failed     Outcome = "error"      // the response was a JSON-RPC error or an HTTP error, or there was none
	ToolFailed Outcome = "tool_error" // the result reports the failure of the tool
	Refused    Outcome = "refused"    // Pasteport refused the call before the MCP server got it
	Unknown    Outcome = "unknown"    // the response did not pass here, or was cut off
)

// Call is one JSON-RPC request of an authenticated caller. Its texts are bounded, and none of them
// is a secret of Pasteport.
type Call struct {
	Time      time.Time // of the request
	Request   string    // id of the HTTP request in the log; "" for none
	Subject   string
	Account   string // the name of the account for people; "" for none
	Client    string // the client_id; for a client that registered itself, a short name
	App       string // the name that the client gives itself
	Grant     string
	Resource  string // URL of the MCP server; "" over stdio
	Method    string // "" for a request that was refused before it could be read
	Name      string // of the tool or prompt
	Arguments []byte // of tools/call, prompts/get and resources/read, in canonical JSON (RFC 8785); nil for none
	Outcome   Outcome
	Code      *int64 // of a JSON-RPC error; nil for none
	Rule      string // that refused the call; "" for none
	Status    int    // of the HTTP response; 0 if it is not known
	Duration  time.Duration
}

// Recorder records a call. It must not keep the Arguments.
type Recorder func(ctx context.Context, call Call)

// Limits of the texts that a client chooses, in bytes.
const (
	MaxMethod = 100
	MaxName   = 200
	MaxClient = 300
)

// Shorten returns a copy of a text in valid UTF-8, cut to at most limit bytes. A text that was cut
// ends with an ellipsis.
func Shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= limit {
		return strings.Clone(text)
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
