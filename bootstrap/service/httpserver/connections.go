package httpserver

import (
	"context"
	"math"
	"net"
	"net/http"
	"sync"

	"github.com/pasteport/pasteport/bootstrap/internal/memory"
)

// limitListener is netutil.LimitListener, but its connections have CloseWrite: net/http looks for
// this method, so that a client can read the refusal of a request that it has not sent in full.
type limitListener struct {
	net.Listener
	slots  chan struct{}
	closed context.Context
	stop   context.CancelFunc
}

func newLimitListener(listener net.Listener, connections int) *limitListener {
	l := &limitListener{Listener: listener, slots: make(chan struct{}, connections)}
	l.closed, l.stop = context.WithCancel(context.Background())
	return l
}

// Accept implements net.Listener. It waits while every connection is taken.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{conn, sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limitListener) Close() error {
	l.stop()
	return l.Listener.Close()
}

// limitedConn frees its slot when it is closed.
type limitedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// CloseWrite closes the sending half.
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
