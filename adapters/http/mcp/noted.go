package mcp

import (
	"net/http"

	"github.com/pasteport/pasteport/domain/trace"
)

// noted is a ResponseWriter that tells the trace before it tells the client.
type noted struct {
	http.ResponseWriter
	walk *trace.Walk
	said bool
}

func (n *noted) say(status int) {
	if n.said || status < http.StatusOK {
		return
	}
	n.said = true
	n.walk.Answer(status)
}

// WriteHeader notes how the request was answered.
func (n *noted) WriteHeader(status int) {
	n.say(status)
	n.ResponseWriter.WriteHeader(status)
}

// Write notes that the request was answered.
func (n *noted) Write(p []byte) (int, error) {
	n.say(http.StatusOK)
	return n.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (n *noted) FlushError() error {
	n.say(http.StatusOK)
	return http.NewResponseController(n.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController, which sets deadlines.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }
