package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// flushTimeout bounds the export of the last spans in Close.
const flushTimeout = 5 * time.Second

// Traces sends a span for each request to an OpenTelemetry collector. A nil *Traces does nothing.
type Traces struct {
	provider *sdktrace.TracerProvider
	logger   *slog.Logger
}

// OpenTraces returns Traces for the standard OTEL_* variables, nil if they set no endpoint or
// disable traces.
func OpenTraces(ctx context.Context, version string, logger *slog.Logger) (*Traces, error) {
	if exporterVariable("ENDPOINT") == "" || os.Getenv("OTEL_SDK_DISABLED") == "true" ||
		os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	if protocol := exporterVariable("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf(
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL or OTEL_EXPORTER_OTLP_PROTOCOL is %q: choose http/protobuf, and the "+
				"port for it, usually 4318", protocol)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("creating the exporter of traces: %w", err)
	}
	attributes, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("pasteport"), semconv.ServiceVersion(version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", errors.Join(err, exporter.Shutdown(ctx)))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("cannot send traces", "error", err) }))
	return &Traces{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(attributes)),
		logger}, nil
}

// exporterVariable returns the variable of the exporter for traces, or that for all signals.
func exporterVariable(name string) string {
	if value := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); value != "" {
		return value
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_" + name)
}

// Follow creates a span for every request to the site, in the trace of the caller if the request
// names one (W3C Trace Context). A span contains the method, the template of the route and the
// status.
func (t *Traces) Follow(site *echo.Echo) {
	if t == nil {
		return
	}
	tracer := t.provider.Tracer("github.com/pasteport/pasteport/adapters/http/telemetry")
	site.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r, method, route := c.Request(), methodOf(c.Request()), c.Path()
			name := method
			if route != "" {
				name += " " + route
			}
			ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer),
				trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route)))
			defer span.End()
			c.SetRequest(r.WithContext(ctx))
			if err := next(c); err != nil {
				c.Error(err)
			}
			status := c.Response().Status
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
			if status >= 500 {
				span.SetStatus(codes.Error, "")
			}
			return nil
		}
	})
}

// Close exports the last spans. It only logs a failure.
func (t *Traces) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.logger.Warn("cannot send the last traces", "error", err)
	}
}
