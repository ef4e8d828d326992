package response

import (
	"encoding/json"
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// RetryAfter is the Retry-After header of every 503, in seconds.
	RetryAfter = "5"
	// TooManyBodies describes the 503 for a body that gets no memory (G19).
	TooManyBodies = "Too many messages are under way"
)

// Unavailable answers 503 without a challenge, so that no client throws its tokens away (G11).
func Unavailable(w http.ResponseWriter, description string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", RetryAfter)
	WriteError(w, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable.Code(), description)
}

// WriteError answers with an error of OAuth as JSON (RFC 6749 section 5.2).
func WriteError(w http.ResponseWriter, status int, code, description string) {
	body, _ := json.Marshal(map[string]string{"error": code, "error_description": description}) // strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
