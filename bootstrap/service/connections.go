package service

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limitedListener has a limited number of connections open. Beyond it a new one takes the place of the one that has been idle longest, and
// waits while none is idle.
type limitedListener struct {
	net.Listener
	logger *slog.Logger
	often  rate.Sometimes // to say that it is full
	places chan struct{}  // one for each open connection
	closed chan struct{}
	close  func() error

	mu      sync.Mutex
	idle    *list.List                 // the longest first
	element map[net.Conn]*list.Element // of idle
	waiting bool                       // a connection has no place yet
}

func limitListener(listener net.Listener, connections int, logger *slog.Logger) *limitedListener {
	l := &limitedListener{
		Listener: listener, logger: logger, often: rate.Sometimes{Interval: time.Minute}, places: make(chan struct{}, connections), closed: make(chan struct{}),
		idle: list.New(), element: map[net.Conn]*list.Element{},
	}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return listener.Close()
	})
	return l
}

// Close implements net.Listener.
func (l *limitedListener) Close() error { return l.close() }

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.findPlace() {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// findPlace reports false when the listener is closed before there is a place.
func (l *limitedListener) findPlace() bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	if !l.closeIdle() {
		l.often.Do(l.warn)
	}
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = false
	return true
}

func (l *limitedListener) warn() {
	l.logger.Warn("every connection is taken and none is idle: new ones wait", "connections", cap(l.places),
		"advice", "raise max-connections, or the limits of memory and files that it follows; limit the connections of one address in the proxy in front")
}

// closeIdle closes the connection that has been idle longest. Without any, the next one that becomes idle is closed.
func (l *limitedListener) closeIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.idle.Front()
	if oldest == nil {
		l.waiting = true
		return false
	}
	conn := l.idle.Remove(oldest).(net.Conn)
	delete(l.element, conn)
	hangUp(conn)
	return true
}

// follow is the http.Server's ConnState.
func (l *limitedListener) follow(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if element, known := l.element[conn]; known {
		l.idle.Remove(element)
		delete(l.element, conn)
	}
	switch {
	case state != http.StateIdle:
	case l.waiting:
		l.waiting = false
		hangUp(conn)
	default:
		l.element[conn] = l.idle.PushBack(conn)
	}
}

// hangUp does without TLS's goodbye, which may have to wait for the client.
func hangUp(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.Close()
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite is what net/http looks for, to let a client read an answer whose request it has not sent in full.
func (c *limitedConn) CloseWrite() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return nil
}

// atOnce answers no more requests at once than there may be connections: only HTTP/2 can bring more. The refusal has no body, which would
// wait until the client lets it through.
func atOnce(requests int, next http.Handler) http.Handler {
	places := make(chan struct{}, requests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}
