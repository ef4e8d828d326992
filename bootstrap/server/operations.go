package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/http/admin"
	"github.com/pasteport/pasteport/adapters/http/telemetry"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/server/httpserver"
)

// operations holds the observability of a service: metrics, traces, and the admin listener.
type operations struct {
	metrics  *telemetry.Metrics
	traces   *telemetry.Traces // nil without a collector
	draining atomic.Bool
	addr     string       // configured admin address
	listener net.Listener // admin listener; nil when it is off
	admin    http.Handler
	bounds   httpserver.Bounds // of the admin listener
}

// openOperations opens the admin listener and the exporter of traces.
func openOperations(ctx context.Context, config Config) (o *operations, err error) {
	o = &operations{metrics: telemetry.NewMetrics(application.Events()...), addr: config.AdminAddr, bounds: httpserver.BoundsFor(httpserver.FewConnections)}
	if o.traces, err = telemetry.OpenTraces(ctx, Version(), config.Logger); err != nil {
		return nil, err
	}
	if o.addr == "" || o.addr == AdminOff {
		return o, nil
	}
	if o.listener, err = httpserver.Listen("--admin-addr", o.addr, DefaultAdminAddr); err != nil {
		o.traces.Close()
		return nil, err
	}
	if bound, ok := o.listener.Addr().(*net.TCPAddr); !ok || !bound.IP.IsLoopback() {
		config.Logger.Warn("the admin listener can be reached from other computers: restrict access to its operators",
			"address", o.listener.Addr().String())
	}
	return o, nil
}

// observe measures and traces every request.
func (o *operations) observe(site *echo.Echo) {
	o.metrics.Measure(site)
	o.traces.Follow(site)
}

// attach adds the gauges and the admin handler of an assembled service.
func (o *operations) attach(s *Service, now func() time.Time) {
	o.metrics.Gauge("pasteport_mcp_streams", "MCP streams that are open.", func() float64 {
		streams, _ := s.servers.Open()
		return float64(streams)
	})
	o.metrics.Gauge("pasteport_mcp_sessions", "MCP sessions that are open.", func() float64 {
		_, sessions := s.servers.Open()
		return float64(sessions)
	})
	o.admin = admin.New(admin.Options{
		Address: o.addr, Metrics: o.metrics.Handler(),
		Routes: admin.Connections(s.Authz.Trace, now),
		Checks: o.checks(s),
	})
}

func (o *operations) checks(s *Service) []admin.Check {
	checks := []admin.Check{
		{Name: "serving", Run: o.serving}, admin.Shared(admin.Check{Name: "oauth database", Run: s.store.Ping}, s.logger),
	}
	if s.bus != nil { // tolerated: an outage affects every replica, and if all left the load balancer, requests that need no other replica would fail too
		checks = append(checks, admin.Check{Name: "bus", Run: s.bus.Ping, Tolerated: true})
	}
	if s.Site != nil {
		checks = append(checks, admin.Shared(admin.Check{Name: "content database", Run: s.Site.Ping}, s.logger))
	}
	return checks
}

var errDraining = errors.New("the service is shutting down")

func (o *operations) serving(context.Context) error {
	if o.draining.Load() {
		return errDraining
	}
	return nil
}

// drain makes the readiness check fail.
func (o *operations) drain() { o.draining.Store(true) }

// serve serves the admin listener until stop is called.
func (o *operations) serve(logger *slog.Logger) (stop func()) {
	if o.listener == nil {
		return func() {}
	}
	server := httpserver.New(o.admin, o.bounds, logger)
	go func() {
		if err := server.Serve(o.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the admin listener has failed", "error", err)
		}
	}()
	return func() { _ = server.Close() } // requests in progress, such as a profile, are cut off
}

// close sends the last spans and closes a listener that was never served.
func (o *operations) close() error {
	o.traces.Close()
	if o.listener == nil {
		return nil
	}
	if err := o.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the admin listener: %w", err)
	}
	return nil
}

// AdminAddr returns the address of the admin listener, nil when it is off.
func (s *Service) AdminAddr() net.Addr {
	if s.operations.listener == nil {
		return nil
	}
	return s.operations.listener.Addr()
}

// requestLog adds the ids of the request and its trace to every line that is logged during the request.
type requestLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (h requestLog) Handle(ctx context.Context, record slog.Record) error {
	if id := oauthhttp.RequestID(ctx); id != "" {
		record.AddAttrs(slog.String("request", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		record.AddAttrs(slog.String("trace", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h requestLog) WithAttrs(attributes []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attributes)}
}

// WithGroup implements slog.Handler.
func (h requestLog) WithGroup(name string) slog.Handler { return requestLog{h.Handler.WithGroup(name)} }

// identify gives each request the id that appears in the log, the trace and an error page.
var identify = oauthhttp.Identify

// accessLog logs one line per request, without the query, which may contain a state or a code (A42).
func accessLog(logger *slog.Logger) echo.MiddlewareFunc {
	handler := logger.Handler()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			began := time.Now()
			if err := next(c); err != nil {
				c.Error(err) // writes the response, so that its status is known
			}
			logAccess(handler, c, began)
			return nil
		}
	}
}

// logAccess is a separate function, so that an idle stream does not keep its stack frame.
func logAccess(handler slog.Handler, c echo.Context, began time.Time) {
	r, now := c.Request(), time.Now()
	if !handler.Enabled(r.Context(), slog.LevelInfo) {
		return
	}
	line := slog.NewRecord(now, slog.LevelInfo, "request", 0) // a Logger would look up the source line
	line.AddAttrs(slog.String("method", r.Method), slog.String("path", cmp.Or(r.URL.Path, "/")),
		slog.Int("status", c.Response().Status), slog.Duration("duration", now.Sub(began)), slog.String("address", c.RealIP()))
	_ = handler.Handle(r.Context(), line) // a failure of the log must not fail the request
}
