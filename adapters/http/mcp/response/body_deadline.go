package response

import (
	"bytes"
	"net/http"
	"time"
)

// bodyLimit is how long a client may take to send a message.
const bodyLimit = 30 * time.Second

// listen waits for the body.
func (w *Writer) listen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listens = true
}

// hurry waits for the body no longer, nor for what else comes on its connection.
func (w *Writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listens && !w.stopped {
		w.late = true
		_ = w.control.SetReadDeadline(time.Now()) // recorders in tests have no deadlines
	}
}

// heard is the end of the body, which may have come at the very last moment.
func (w *Writer) heard(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listens = false; w.late && err == nil {
		_ = w.control.SetReadDeadline(time.Time{})
	}
}

// isUnread reports that there is more of the request than was heard.
func (w *Writer) isUnread() bool {
	body := w.request.Body
	return body != nil && body != http.NoBody && body != &w.body
}

// whole is a body that has been read.
type whole struct{ bytes.Reader }

// Close implements io.Closer.
func (*whole) Close() error { return nil }
