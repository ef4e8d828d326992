package stream

import (
	"net/http"

	"github.com/pasteport/pasteport/domain/attempt"
)

// tracedWriter records the status in the trace before it is sent.
type tracedWriter struct {
	http.ResponseWriter
	recorder *attempt.Recorder
	status   int // 0 before it is sent
}

func (t *tracedWriter) record(status int) {
	if t.status > 0 || status < http.StatusOK {
		return
	}
	t.status = status
	t.recorder.Answer(status)
}

func (t *tracedWriter) WriteHeader(status int) {
	t.record(status)
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracedWriter) Write(p []byte) (int, error) {
	t.record(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// FlushError is called by http.ResponseController.
func (t *tracedWriter) FlushError() error {
	t.record(http.StatusOK)
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is called by http.ResponseController, which sets deadlines.
func (t *tracedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
