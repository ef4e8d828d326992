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

// limitedListener has a limited number of connections open. Beyond it a new one takes the place of the one that has been idle longest, or
// else of the oldest that has sent nothing for silentLimit, and waits while there is neither.
type limitedListener struct {
	net.Listener
	logger *slog.Logger
	often  rate.Sometimes // to say that it is full
	places chan struct{}  // one for each open connection
	closed chan struct{}
	close  func() error

	mu      sync.Mutex
	idle    *list.List // connections between two requests, the longest first
	silent  *list.List // silentConns, which have sent nothing yet, the oldest first
	element map[net.Conn]place
	waiting bool // a connection has no place yet
}

// place is where a connection is listed.
type place struct {
	list    *list.List
	element *list.Element
}

// silentConn is a connection that has sent nothing.
type silentConn struct {
	net.Conn
	since time.Time
}

const (
	// silentLimit lets a slow client finish its TLS handshake while the listener is full.
	silentLimit = 2 * time.Second
	// lookAgain is how often a full listener looks for a connection that has become too silent.
	lookAgain = 100 * time.Millisecond
)

func limitListener(listener net.Listener, connections int, logger *slog.Logger) *limitedListener {
	l := &limitedListener{
		Listener: listener, logger: logger, often: rate.Sometimes{Interval: time.Minute}, places: make(chan struct{}, connections), closed: make(chan struct{}),
		idle: list.New(), silent: list.New(), element: map[net.Conn]place{},
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
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for made := l.makePlace(time.Now()); ; {
		if !made {
			l.often.Do(l.warn)
		}
		select {
		case l.places <- struct{}{}:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.waiting = false
			return true
		case <-l.closed:
			return false
		case now := <-again.C:
			made = made || l.makePlace(now)
		}
	}
}

func (l *limitedListener) warn() {
	l.logger.Warn("every connection is taken and none is idle: new ones wait", "connections", cap(l.places),
		"advice", "raise max-connections, or the limits of memory and files that it follows; limit the connections of one address in the proxy in front")
}

// makePlace closes the connection that has been idle longest, or the oldest that is too silent. Without either, the next one that becomes
// idle is closed.
func (l *limitedListener) makePlace(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn := l.dispensable(now)
	if conn == nil {
		l.waiting = true
		return false
	}
	l.forget(conn)
	hangUp(conn)
	return true
}

func (l *limitedListener) dispensable(now time.Time) net.Conn {
	if oldest := l.idle.Front(); oldest != nil {
		return oldest.Value.(net.Conn)
	}
	if oldest := l.silent.Front(); oldest != nil {
		if one := oldest.Value.(silentConn); now.Sub(one.since) >= silentLimit {
			return one.Conn
		}
	}
	return nil
}

func (l *limitedListener) forget(conn net.Conn) {
	if at, known := l.element[conn]; known {
		at.list.Remove(at.element)
		delete(l.element, conn)
	}
}

// follow is the http.Server's ConnState.
func (l *limitedListener) follow(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(conn)
	switch {
	case state == http.StateNew:
		l.element[conn] = place{l.silent, l.silent.PushBack(silentConn{conn, time.Now()})}
	case state != http.StateIdle:
	case l.waiting:
		l.waiting = false
		hangUp(conn)
	default:
		l.element[conn] = place{l.idle, l.idle.PushBack(conn)}
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
