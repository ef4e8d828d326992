// Package site is what sites that are built on Echo have around everything.
package site

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// NewEcho is an Echo that prints nothing.
func NewEcho() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	return e
}

// Quiet writes every line down, for nobody.
func Quiet() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

// With is a site whose MCP endpoint is that of the handler; people log in at the other.
func With(endpoint, login http.Handler) http.Handler {
	e := NewEcho()
	e.Any("/mcp", echo.WrapHandler(endpoint))
	e.Any("/*", echo.WrapHandler(login))
	return e
}

// Furnish adds what a site has around everything: ids of requests, an access log, headers for browsers, and a net under panics.
func Furnish(e *echo.Echo) {
	logger := Quiet()
	e.Use(middleware.RequestID(), middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogMethod: true, LogURIPath: true, LogStatus: true, LogLatency: true, LogRemoteIP: true, LogRequestID: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			logger.InfoContext(c.Request().Context(), "request", "method", v.Method, "path", v.URIPath, "status", v.Status,
				"duration", v.Latency, "address", v.RemoteIP, "request", v.RequestID)
			return nil
		},
	}), middleware.Secure(), middleware.Recover())
}
