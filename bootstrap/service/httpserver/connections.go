package httpserver

import (
	"math"
	"net"
	"net/http"

	"github.com/pasteport/pasteport/bootstrap/internal/memory"
)

// limitListener accepts a connection when there is a free slot. The server frees the slot of a
// connection that is closed. Unlike netutil.LimitListener, it leaves connections as they are:
// net/http looks for CloseWrite, so that a client can read the refusal of a request that it has not
// sent in full.
type limitListener struct {
	net.Listener
	slots chan struct{}
}

// Accept implements net.Listener. It waits while every connection is taken.
func (l limitListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
	}
	return conn, err
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
