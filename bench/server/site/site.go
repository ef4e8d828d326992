// Package site is the usual middleware of sites on Echo, and a minimal guard.
package site

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// NewEcho returns an Echo that prints nothing.
func NewEcho() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	return e
}

// Quiet formats every log line and discards it.
func Quiet() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

// With serves endpoint at /mcp and login everywhere else.
func With(endpoint, login http.Handler) http.Handler {
	e := NewEcho()
	e.Any("/mcp", echo.WrapHandler(endpoint))
	e.Any("/*", echo.WrapHandler(login))
	return e
}

// Furnish adds a site's middleware: request ids, an access log, security headers and panic
// recovery.
func Furnish(e *echo.Echo) {
	logger := Quiet()
	e.Use(middleware.RequestID(), middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogMethod:    true,
		LogURIPath:   true,
		LogStatus:    true,
		LogLatency:   true,
		LogRemoteIP:  true,
		LogRequestID: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			logger.InfoContext(c.Request().Context(), "request", "method", v.Method, "path", v.URIPath,
				"status", v.Status,
				"duration", v.Latency, "address", v.RemoteIP, "request", v.RequestID)
			return nil
		},
	}), middleware.Secure(), middleware.Recover())
}
