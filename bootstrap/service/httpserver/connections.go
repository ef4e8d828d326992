package httpserver

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/bootstrap/internal/memory"
)

// limitedListener limits the number of open connections. At the limit, a new connection replaces
// the one that has been idle longest, or the oldest one that has sent nothing for silentLimit;
// without such a connection it waits.
type limitedListener struct {
	net.Listener
	logger *slog.Logger
	often  rate.Sometimes // limits the warning that it is full
	slots  chan struct{}  // one element for each open connection
	closed chan struct{}
	close  func() error

	mu      sync.Mutex
	idle    *list.List // connections between two requests, longest idle first
	silent  *list.List // connections that have sent nothing yet, oldest first
	listed  map[net.Conn]position
	waiting bool // an accepted connection has no slot yet
}

// position is the list that holds a connection, and its element there.
type position struct {
	list    *list.List
	element *list.Element
}

// silentConn is a connection that has sent nothing yet.
type silentConn struct {
	net.Conn
	since time.Time
}

const (
	// silentLimit lets a slow client finish its TLS handshake while the listener is full.
	silentLimit = 2 * time.Second
	// evictEvery is the interval in which a full listener looks for a connection that has been
	// silent for silentLimit.
	evictEvery = 100 * time.Millisecond
)

func limitListener(listener net.Listener, connections int, logger *slog.Logger) *limitedListener {
	l := &limitedListener{
		Listener: listener,
		logger:   logger,
		often:    rate.Sometimes{Interval: time.Minute},
		slots:    make(chan struct{}, connections),
		closed:   make(chan struct{}),
		idle:     list.New(),
		silent:   list.New(),
		listed:   map[net.Conn]position{},
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
	if !l.acquire() {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// acquire takes a slot for a connection; it reports false when the listener is closed first.
func (l *limitedListener) acquire() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	ticks := time.NewTicker(evictEvery)
	defer ticks.Stop()
	for evicted := l.evict(time.Now()); ; {
		if !evicted {
			l.often.Do(l.warn)
		}
		select {
		case l.slots <- struct{}{}:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.waiting = false
			return true
		case <-l.closed:
			return false
		case now := <-ticks.C:
			evicted = evicted || l.evict(now)
		}
	}
}

func (l *limitedListener) warn() {
	l.logger.Warn("every connection is taken and none is idle: new ones wait", "connections", cap(l.slots),
		"advice", "raise max-connections, or the limits of memory and files that it follows; limit the connections "+
			"of one address in the proxy in front")
}

// evict closes an evictable connection. Without one it returns false, and trackState closes the
// next connection that becomes idle.
func (l *limitedListener) evict(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn := l.evictable(now)
	if conn == nil {
		l.waiting = true
		return false
	}
	l.forget(conn)
	hangUp(conn)
	return true
}

// evictable returns the longest idle connection, or else the oldest one that has been silent for
// silentLimit, or nil.
func (l *limitedListener) evictable(now time.Time) net.Conn {
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
	if at, known := l.listed[conn]; known {
		at.list.Remove(at.element)
		delete(l.listed, conn)
	}
}

// trackState is the ConnState hook of the http.Server.
func (l *limitedListener) trackState(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(conn)
	switch {
	case state == http.StateNew:
		l.listed[conn] = position{l.silent, l.silent.PushBack(silentConn{conn, time.Now()})}
	case state != http.StateIdle:
	case l.waiting:
		l.waiting = false
		hangUp(conn)
	default:
		l.listed[conn] = position{l.idle, l.idle.PushBack(conn)}
	}
}

// hangUp closes a connection without the TLS close message, which may have to wait for the client.
func hangUp(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.Close()
}

// limitedConn releases its slot when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite lets a client read the response to a request that it has not sent in full; net/http
// looks for this method.
func (c *limitedConn) CloseWrite() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return nil
}

// limitRequests refuses requests beyond the limit on connections, which only HTTP/2 can exceed. The
// refusal has no body, because a body waits for the client's flow control.
func limitRequests(requests int, next http.Handler) http.Handler {
	slots := make(chan struct{}, requests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

const (
	// connectionMemory is the maximum memory of a connection before its request is authenticated:
	// 32 KiB of headers in short lines take 510 KiB in net/http.
	connectionMemory = 512 << 10
	// minConnections keeps a service usable if its process has hardly any memory or files.
	minConnections = 16
	unlimited      = math.MaxInt64
)

// Capacity holds the limits of the process that bound its connections.
type Capacity struct {
	Files  uint64 // open at once
	Memory uint64 // bytes
}

// ProcessCapacity reads the limits of this process: the user's limit on open files, and the memory
// that memory.Limit finds.
func ProcessCapacity() Capacity {
	//nolint:gosec // a limit of memory is never negative
	return Capacity{Files: fileLimit(), Memory: uint64(memory.Limit())}
}

// Connections leaves half of the files and of the memory to everything else: the database, other
// servers, garbage.
func (c Capacity) Connections() int {
	most := min(c.Files/2, c.Memory/2/connectionMemory, math.MaxInt32)
	return max(minConnections, int(most))
}
