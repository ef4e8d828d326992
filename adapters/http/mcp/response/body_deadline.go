package response

import (
	"bytes"
	"net/http"
	"time"
)

// bodyLimit is the time that a client has to send a body.
const bodyLimit = 30 * time.Second

func (w *Writer) beginBody() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readingBody = true
}

// expireBody makes reads from the connection fail while the body is read.
func (w *Writer) expireBody() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readingBody && !w.stopped {
		w.bodyExpired = true
		_ = w.control.SetReadDeadline(time.Now()) // recorders in tests have no deadlines
	}
}

// endBody removes the deadline if the body was complete before it took effect.
func (w *Writer) endBody(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readingBody = false; w.bodyExpired && err == nil {
		_ = w.control.SetReadDeadline(time.Time{})
	}
}

// isUnread reports whether the request has a body that was not read.
func (w *Writer) isUnread() bool {
	body := w.request.Body
	return body != nil && body != http.NoBody && body != &w.body
}

// bufferedBody is the body of a request after it was read.
type bufferedBody struct{ bytes.Reader }

// Close implements io.Closer.
func (*bufferedBody) Close() error { return nil }
