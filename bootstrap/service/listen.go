package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	drainLimit = 10 * time.Second

	// headerBytes bounds what a request that is not authenticated yet can keep in memory. net/http adds 4 KiB over HTTP/1.
	headerBytes = 32 << 10
	// streamsOfConnection and windowBytes do the same for HTTP/2: the least that its standard recommends, and the least that net/http takes.
	streamsOfConnection = 100
	windowBytes         = 64 << 10

	// fewConnections are for listeners that only this computer uses, or its operator.
	fewConnections = 64
)

// bounds are what a client may take of a listener. The answers of the MCP server go on for longer than read and write: it has deadlines of
// its own for them.
type bounds struct {
	header, read, write, idle time.Duration
	connections               int
}

func boundsFor(connections int) bounds {
	return bounds{header: 10 * time.Second, read: 30 * time.Second, write: time.Minute, idle: 2 * time.Minute, connections: connections}
}

// listen takes the address before anything else is opened, so that a second start fails without a trace.
func listen(addr string) (net.Listener, error) { return listenFor("--addr", addr, defaultAddr) }

// listenFor says by which flag the address can be changed, and to what.
func listenFor(flag, addr, example string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s: %w: another program uses it, choose another with %s", addr, err, flag)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w: choose host:port with %s, for example %s", addr, err, flag, example)
	}
	return listener, nil
}

// Serve answers on the listener until ctx ends, then lets requests under way finish and ends open streams. The admin listener says
// so from the first moment, and is there to the last.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	server := newHTTPServer(s.Echo, s.bounds, s.logger)
	server.TLSConfig = s.tls
	server.RegisterOnShutdown(s.Drain)
	defer context.AfterFunc(ctx, s.operations.drain)()
	defer s.operations.serve(s.logger)()
	return serveAndDrain(ctx, server, listener)
}

// Drain ends every open stream; Serve does so when it stops.
func (s *Service) Drain() { s.servers.Drain() }

// boundedServer is an http.Server that accepts a limited number of connections.
type boundedServer struct {
	http.Server
	connections int
	logger      *slog.Logger
}

func newHTTPServer(handler http.Handler, b bounds, logger *slog.Logger) *boundedServer {
	return &boundedServer{connections: b.connections, logger: logger, Server: http.Server{
		Handler:           atOnce(b.connections, handler),
		ReadHeaderTimeout: b.header, ReadTimeout: b.read, WriteTimeout: b.write, IdleTimeout: b.idle, MaxHeaderBytes: headerBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streamsOfConnection, MaxReceiveBufferPerConnection: windowBytes, MaxReceiveBufferPerStream: windowBytes,
			WriteByteTimeout: b.write,
		},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}}
}

// serve answers until it is shut down.
func (s *boundedServer) serve(listener net.Listener) error {
	limited := limitListener(listener, s.connections, s.logger)
	s.ConnState = limited.follow
	if s.TLSConfig == nil {
		return s.Serve(limited)
	}
	return s.ServeTLS(limited, "", "") // HTTP/2 is offered too
}

func serveAndDrain(ctx context.Context, server *boundedServer, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		_ = server.Close() // whoever is not done by now is cut off, which is no failure of ours
	}
	return nil
}
