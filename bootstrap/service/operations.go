package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	"github.com/pasteport/pasteport/adapters/admin"
	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/http/telemetry"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/service/httpserver"
	"github.com/pasteport/pasteport/domain/uri"
)

// operations holds the observability of a service: metrics, traces, and the admin listener.
type operations struct {
	metrics  *telemetry.Metrics
	traces   *telemetry.Traces // nil without a collector
	draining atomic.Bool
	unlisted atomic.Pointer[netip.Addr] // a proxy that trusted-proxies does not list; nil for none
	addr     string                     // configured admin address
	listener net.Listener               // admin listener; nil when it is off
	admin    http.Handler
	bounds   httpserver.Bounds // of the admin listener
}

// openOperations opens the admin listener and the exporter of traces.
func openOperations(ctx context.Context, config Config) (o *operations, err error) {
	o = &operations{metrics: telemetry.NewMetrics(config.Now, application.Events()...), addr: config.AdminAddr,
		bounds: httpserver.BoundsFor(httpserver.FewConnections)}
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

// attach adds the gauges and the admin handler of an assembled service.
func (o *operations) attach(s *Service, now func() time.Time) {
	o.metrics.Gauge("pasteport_mcp_streams", "MCP streams that are open.", func() float64 {
		streams, _ := s.countOpen()
		return float64(streams)
	})
	o.metrics.Gauge("pasteport_mcp_sessions", "MCP sessions that are open.", func() float64 {
		_, sessions := s.countOpen()
		return float64(sessions)
	})
	o.metrics.Counter("pasteport_store_collisions_total",
		"Changes that another replica was faster with; each is tried at most 16 times.", func() float64 {
			return float64(s.store.Collisions())
		})
	o.metrics.Upstreams(s.upstreams.Gauges)
	overview := admin.Overview{
		Connections: s.Authz.Trace,
		Upstreams:   s.upstreams.Results,
		Activities: func() (all []admin.Activity) { // of each MCP server in this process
			for _, server := range s.Authz.Resources() {
				if server.Introspects() {
					continue
				}
				_, path := uri.SplitOrigin(server.Resource.String())
				found := admin.Activity{Name: server.Name, Resource: server.Resource.String()}
				// Clients use the path with or without a slash, or post messages of HTTP+SSE.
				routes := []string{cmp.Or(path, "/"), path + "/", guard.MessagePath(server.Resource)}
				for _, slot := range o.metrics.LastDay(routes...) {
					found.Slots = append(found.Slots, admin.Slot(slot))
				}
				all = append(all, found)
			}
			return all
		},
		Now: now,
	}
	o.admin = admin.New(admin.Options{
		Address: o.addr,
		Metrics: o.metrics.Handler(),
		Routes:  append(overview.Routes(), admin.Grants(s.Authz)),
		Checks:  o.checks(s),
	})
}

func (o *operations) checks(s *Service) []admin.Check {
	checks := []admin.Check{
		{Name: "serving", Run: func(context.Context) (none admin.Description, err error) {
			if o.draining.Load() {
				err = errors.New("the service is shutting down")
			}
			return none, err
		}},
		admin.Logged("oauth database", s.store.Ping, s.logger),
		{Name: admin.ProxiesCheck, Run: o.proxies},
	}
	if s.audit != nil {
		checks = append(checks, admin.Check{Name: "audit file", Run: func(context.Context) (admin.Description, error) {
			return admin.Description{}, s.audit.Ready()
		}})
	}
	checks = append(checks, s.upstreams.Checks()...)
	if s.Site != nil {
		checks = append(checks, admin.Logged("demo site", s.Site.Ping, s.logger))
	}
	return checks
}

// noteProxy remembers a peer that has named a client, but only one on this computer or a private
// network: a stranger on the internet can name a client, too.
func (o *operations) noteProxy(peer netip.Addr) {
	if peer.IsLoopback() || peer.IsPrivate() {
		o.unlisted.Store(&peer)
	}
}

func (o *operations) proxies(context.Context) (d admin.Description, err error) {
	if peer := o.unlisted.Load(); peer != nil {
		d.Detail = "requests from " + peer.String() + " have named a client, but trusted-proxies does not list it"
		d.Remedy = "If a proxy of yours is there, set trusted-proxies: " + peer.String()
	}
	return d, nil
}

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

// requestLog adds the ids of the request and of its trace to each line logged during the request.
type requestLog struct{ slog.Handler }

func (h requestLog) Handle(ctx context.Context, record slog.Record) error {
	if id := oauthhttp.RequestID(ctx); id != "" {
		record.AddAttrs(slog.String("request", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		record.AddAttrs(slog.String("trace", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

func (h requestLog) WithAttrs(attributes []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attributes)}
}

func (h requestLog) WithGroup(name string) slog.Handler { return requestLog{h.Handler.WithGroup(name)} }

// accessLog logs one line per request, without the query, which may contain a state or a code.
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

// logAccess is a separate function, so that an open stream does not keep its variables in memory.
func logAccess(handler slog.Handler, c echo.Context, began time.Time) {
	r, now := c.Request(), time.Now()
	if !handler.Enabled(r.Context(), slog.LevelInfo) {
		return
	}
	line := slog.NewRecord(now, slog.LevelInfo, "request", 0) // a Logger would look up the source line
	line.AddAttrs(slog.String("method", r.Method), slog.String("path", cmp.Or(r.URL.Path, "/")),
		slog.Int("status", c.Response().Status), slog.Float64("duration_ms",
			float64(now.Sub(began).Microseconds())/1000), slog.String("address", c.RealIP()))
	_ = handler.Handle(r.Context(), line) // a failure of the log must not fail the request
}
