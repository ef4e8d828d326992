// Package httpserver runs HTTP servers whose memory and connections are bounded. New makes a Server
// from a handler and its Bounds; ServeAndDrain serves until its context ends and then lets requests
// finish. Capacity derives the number of connections from the limits of the process.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/bootstrap/internal/memory"
)

const (
	drainLimit = 10 * time.Second

	// headerBytes bounds what a request that is not authenticated yet can keep in memory. net/http
	// adds 4 KiB over HTTP/1.
	headerBytes = 32 << 10
	// maxStreams and windowBytes do the same for HTTP/2: the least that RFC 9113 recommends, and
	// the least that net/http accepts.
	maxStreams  = 100
	windowBytes = 64 << 10

	// FewConnections is enough for a listener that only this computer or the operator uses.
	FewConnections = 64
)

// Bounds are the deadlines of a server and the number of its connections. MCP streams last longer
// than Read and Write; they set their own deadlines.
type Bounds struct {
	Header, Read, Write, Idle time.Duration
	Connections               int
}

// BoundsFor returns the deadlines that suit every server, with the given number of connections.
func BoundsFor(connections int) Bounds {
	return Bounds{
		Header:      10 * time.Second,
		Read:        30 * time.Second,
		Write:       time.Minute,
		Idle:        time.Minute,
		Connections: connections,
	}
}

// Listen opens the address that flag sets; its error names the flag and an example.
func Listen(flag, addr, example string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s: %w: another program uses it, choose another with %s", addr, err, flag)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w: choose host:port with %s, for example %s", addr, err,
			flag, example)
	}
	return listener, nil
}

// Server is an http.Server that accepts a limited number of connections.
type Server struct {
	http.Server
	connections int
}

// New makes a server; it logs to logger when a request or a handshake fails.
func New(handler http.Handler, b Bounds, logger *slog.Logger) *Server {
	return &Server{connections: b.Connections, Server: http.Server{
		Handler:           limitRequests(b.Connections, handler),
		ReadHeaderTimeout: b.Header,
		ReadTimeout:       b.Read,
		WriteTimeout:      b.Write,
		IdleTimeout:       b.Idle,
		MaxHeaderBytes:    headerBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerConnection: windowBytes,
			MaxReceiveBufferPerStream:     windowBytes,
			WriteByteTimeout:              b.Write,
		},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}}
}

// Serve accepts connections until the server is shut down or closed; with a TLSConfig it serves
// TLS, including HTTP/2. Connections beyond the limit wait.
func (s *Server) Serve(listener net.Listener) error {
	limited := limitListener{listener, make(chan struct{}, s.connections)}
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			<-limited.slots
		}
	}
	if s.TLSConfig == nil {
		return s.Server.Serve(limited)
	}
	return s.ServeTLS(limited, "", "")
}

// ServeAndDrain serves until ctx ends, and then waits up to drainLimit for the requests in
// progress.
func (s *Server) ServeAndDrain(ctx context.Context, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	if err := s.Shutdown(drain); err != nil {
		_ = s.Close() // requests that outlast the limit are cut off; that is not a failure of the server
	}
	return nil
}

// limitListener accepts a connection when a slot is free. Server.Serve frees the slot of a
// connection that is closed or hijacked. Unlike netutil.LimitListener, it leaves connections as
// they are: net/http looks for CloseWrite, so that a client can read the refusal of a request that
// it has not sent in full.
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

// limitRequests refuses requests while as many run as there may be connections, which takes HTTP/2.
// The refusal has no body, because a body waits for the client's flow control.
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
	minConnections   = 16 // however little memory and files the process has
	unlimited        = math.MaxInt64
)

// Capacity holds the limits of the process that bound its connections.
type Capacity struct {
	Files  uint64 // open at once
	Memory uint64 // bytes
}

// ProcessCapacity reads the limits of this process.
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
