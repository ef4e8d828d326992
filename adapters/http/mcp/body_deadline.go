package mcp

import (
	"net/http"
	"time"
)

// bodyLimit is how long a client may take to send a message.
const bodyLimit = 30 * time.Second

// listen waits for the body.
func (s *stream) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listens = true
}

// hurry waits for the body no longer, nor for what else comes on its connection.
func (s *stream) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listens && !s.stopped {
		s.late = true
		_ = s.control.SetReadDeadline(time.Now()) // recorders in tests have no deadlines
	}
}

// heard is the end of the body, which may have come at the very last moment.
func (s *stream) heard(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listens = false; s.late && err == nil {
		_ = s.control.SetReadDeadline(time.Time{})
	}
}

// isUnread reports that there is more of the request than was heard.
func (s *stream) isUnread() bool {
	body := s.request.Body
	return body != nil && body != http.NoBody && body != &s.body
}
