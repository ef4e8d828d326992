package service

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
)

// requestLog adds the ids of the request and its trace to every line that is logged during the
// request.
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

// logAccess is a separate function, so that an idle stream does not keep its stack frame.
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
