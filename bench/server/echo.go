package server

import (
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/pasteport/pasteport/domain/oauth"
)

// pong is the answer to every ping.
const pong = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"

// answer is what every guard here stands in front of.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, pong)
}

// answerCaller is the same behind the guard of Pasteport.
func answerCaller(w http.ResponseWriter, r *http.Request, _ oauth.Caller) { answer(w, r) }

func newEcho() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	return e
}

// bareEcho is the least that anything built on Echo costs. Its page and its document have the sizes of ours.
func bareEcho(Order, string) (site, error) {
	e := newEcho()
	plain(e)
	return site{e, still}, nil
}

func siteEcho(Order, string) (site, error) {
	e := newEcho()
	asSites(e)
	plain(e)
	return site{e, still}, nil
}

func plain(e *echo.Echo) {
	page, document := []byte(strings.Repeat("x", 15_000)), []byte(`{"x":"`+strings.Repeat("x", 900)+`"}`)
	e.POST("/mcp", echo.WrapHandler(http.HandlerFunc(answer)))
	e.GET("/oauth/authorize", func(c echo.Context) error { return c.HTMLBlob(http.StatusOK, page) })
	e.GET("/.well-known/oauth-authorization-server", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, document) })
}

// quiet writes every line down, for nobody.
func quiet() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

// asSites adds what a site has around everything: ids of requests, an access log, headers for browsers, and a net under panics.
func asSites(e *echo.Echo) {
	logger := quiet()
	e.Use(middleware.RequestID(), middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogMethod: true, LogURIPath: true, LogStatus: true, LogLatency: true, LogRemoteIP: true, LogRequestID: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			logger.InfoContext(c.Request().Context(), "request", "method", v.Method, "path", v.URIPath, "status", v.Status,
				"duration", v.Latency, "address", v.RemoteIP, "request", v.RequestID)
			return nil
		},
	}), middleware.Secure(), middleware.Recover())
}
