package response

import (
	"net/http"

	"github.com/pasteport/pasteport/domain/trace"
)

// tracedWriter is a ResponseWriter that tells the trace before it tells the client.
type tracedWriter struct {
	http.ResponseWriter
	recorder *trace.Recorder
	said     bool
}

func (t *tracedWriter) say(status int) {
	if t.said || status < http.StatusOK {
		return
	}
	t.said = true
	t.recorder.Answer(status)
}

// WriteHeader notes how the request was answered.
func (t *tracedWriter) WriteHeader(status int) {
	t.say(status)
	t.ResponseWriter.WriteHeader(status)
}

// Write notes that the request was answered.
func (t *tracedWriter) Write(p []byte) (int, error) {
	t.say(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (t *tracedWriter) FlushError() error {
	t.say(http.StatusOK)
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController, which sets deadlines.
func (t *tracedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
