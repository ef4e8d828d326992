package server

import (
	"io"
	"net/http"
)

// pong is the response to every ping; it has 37 bytes.
const pong = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"

// Answer is the common handler behind every guard.
func Answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, pong)
}
