package bootstrap

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
)

// listen takes the address before anything else is opened, so that a second start fails without a trace.
func listen(addr string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s: %w: another program uses it, choose another with --addr", addr, err)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w: choose host:port with --addr, for example %s", addr, err, defaultAddr)
	}
	return listener, nil
}

// Serve answers on the listener until ctx ends, then lets requests under way finish and ends open streams.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	server := newHTTPServer(s.Echo, s.Authz.config.Logger)
	server.RegisterOnShutdown(s.MCP.Drain)
	return serveAndDrain(ctx, server, listener)
}

// newHTTPServer leaves WriteTimeout off because it would cut streams.
func newHTTPServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

func serveAndDrain(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
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
