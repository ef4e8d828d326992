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
	headerLimit = 10 * time.Second
	idleLimit   = 2 * time.Minute
	drainLimit  = 10 * time.Second

	// headerBytes bounds what a request that is not authenticated yet can keep in memory. net/http adds 4 KiB over HTTP/1.
	headerBytes = 32 << 10
)

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
	server := newHTTPServer(s.Echo, s.logger)
	server.TLSConfig = s.tls
	server.RegisterOnShutdown(s.Drain)
	defer context.AfterFunc(ctx, s.operations.drain)()
	defer s.operations.serve(s.logger)()
	return serveAndDrain(ctx, server, listener)
}

// Drain ends every open stream; Serve does so when it stops.
func (s *Service) Drain() { s.servers.Drain() }

// newHTTPServer leaves WriteTimeout off because it would cut streams.
func newHTTPServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

func serveAndDrain(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() {
		if server.TLSConfig == nil {
			failed <- server.Serve(listener)
			return
		}
		failed <- server.ServeTLS(listener, "", "") // HTTP/2 is offered too
	}()
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
