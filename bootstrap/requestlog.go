package bootstrap

import (
	"context"
	"log/slog"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/otel/trace"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
)

// requestLog writes the id of the request, and of the trace that it belongs to, behind every line that is logged during it.
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

// identify gives each request the id that the log, the trace and a page about it have in common.
var identify = oauthhttp.Identify

// accessLog writes one line per request, without its query, which may carry a state or a code (A42).
func accessLog(logger *slog.Logger) echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogMethod: true, LogURIPath: true, LogStatus: true, LogLatency: true, LogRemoteIP: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			logger.InfoContext(c.Request().Context(), "request", "method", v.Method, "path", v.URIPath, "status", v.Status,
				"duration", v.Latency, "address", v.RemoteIP)
			return nil
		},
	})
}
