package stream

import (
	"encoding/json"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// RetryAfter is the Retry-After header of every 503, in seconds.
	RetryAfter = "5"
	// TooManyBodies is the description of the 503 for a body without memory.
	TooManyBodies = "Too many messages are being processed"
	// ShuttingDown is the description of the 503 during a shutdown.
	ShuttingDown = "The service is shutting down"
)

// Unavailable answers 503 without a challenge, so that clients keep their tokens.
func Unavailable(w http.ResponseWriter, description string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", RetryAfter)
	WriteError(w, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable.Code(), description)
}

// WriteError answers with an OAuth error (RFC 6749 §5.2).
func WriteError(w http.ResponseWriter, status int, code, description string) {
	body, _ := json.Marshal(map[string]string{"error": code, "error_description": description}) // strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// NoSession answers 404, so that the client initializes another session.
func NoSession(w http.ResponseWriter) {
	message.WriteError(w, http.StatusNotFound, "Not Found: the session does not exist")
}

// RefuseSession is NoSession with a rule and a reason for the trace.
func RefuseSession(w http.ResponseWriter, r *http.Request, rule, reason string) {
	attempt.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, rule, reason))
	NoSession(w)
}

// IsInvalidToken reports whether an Authorization has refused a token.
func IsInvalidToken(err error) bool {
	kind, ok := oauth.KindOf(err)
	return ok && kind == oauth.InvalidToken
}
