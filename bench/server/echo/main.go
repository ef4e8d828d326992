// Command echo is the common handler on Echo without a guard, and behind a minimal guard.
package main

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/site"
)

func main() {
	server.Main(map[string]server.Open{
		"echo":            bare,
		"echo-site":       furnished,
		"echo-guard":      guarded(func(*echo.Echo) {}),
		"echo-site-guard": guarded(site.Furnish),
	})
}

func bare(server.Order, string) (server.Site, error) { return routes(site.NewEcho()), nil }

func furnished(server.Order, string) (server.Site, error) {
	e := site.NewEcho()
	site.Furnish(e)
	return routes(e), nil
}

// guarded adds the minimal guard after the given middleware.
func guarded(behind func(*echo.Echo)) server.Open {
	return func(server.Order, string) (server.Site, error) {
		e := site.NewEcho()
		behind(e)
		e.Use(site.Guard(site.Known(load.StandingToken)))
		return routes(e), nil
	}
}

// routes adds the common handler, and a page and a document of the same sizes as Pasteport's.
func routes(e *echo.Echo) server.Site {
	page, document := []byte(strings.Repeat("x", 13_700)), []byte(`{"x":"`+strings.Repeat("x", 900)+`"}`)
	e.POST("/mcp", echo.WrapHandler(http.HandlerFunc(server.Answer)))
	e.GET("/oauth/authorize", func(c echo.Context) error { return c.HTMLBlob(http.StatusOK, page) })
	e.GET("/.well-known/oauth-authorization-server", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, document)
	})
	return server.Site{Handler: e, Close: server.Still}
}
