// Command echo is the least that anything built on Echo costs, and the least that a guard on Echo can cost.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/site"
)

func main() {
	server.Main(map[string]server.Open{"echo": bare, "echo-guard": guarded, "echo-site": furnished})
}

func bare(server.Order, string) (server.Site, error) { return routes(site.NewEcho()), nil }

func furnished(server.Order, string) (server.Site, error) {
	e := site.NewEcho()
	site.Furnish(e)
	return routes(e), nil
}

// guarded is the least that a guard can do: it looks the token up by its digest, in memory, and whether the body is JSON.
func guarded(server.Order, string) (server.Site, error) {
	e := site.NewEcho()
	e.Use(guard(map[[sha256.Size]byte]bool{sha256.Sum256([]byte(load.StandingToken)): true}))
	return routes(e), nil
}

func guard(known map[[sha256.Size]byte]bool) echo.MiddlewareFunc {
	var mu sync.RWMutex // somebody may revoke
	knows := func(token string) bool {
		digest := sha256.Sum256([]byte(token))
		mu.RLock()
		defer mu.RUnlock()
		return known[digest]
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !bearer || !knows(token) {
				return echo.ErrUnauthorized
			}
			body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, 1<<20))
			if err != nil || !json.Valid(body) {
				return echo.ErrBadRequest
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return next(c)
		}
	}
}

// routes are the common handler, and a page and a document of the sizes of ours.
func routes(e *echo.Echo) server.Site {
	page, document := []byte(strings.Repeat("x", 13_700)), []byte(`{"x":"`+strings.Repeat("x", 900)+`"}`)
	e.POST("/mcp", echo.WrapHandler(http.HandlerFunc(server.Answer)))
	e.GET("/oauth/authorize", func(c echo.Context) error { return c.HTMLBlob(http.StatusOK, page) })
	e.GET("/.well-known/oauth-authorization-server", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, document) })
	return server.Site{Handler: e, Close: server.Still}
}
