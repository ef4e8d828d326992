// Command sdk is the official Go SDK's own handlers, without a guard, and behind others than Pasteport's.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/greeter"
	"github.com/pasteport/pasteport/bench/server/site"
)

func main() {
	known := site.Known(load.StandingToken)
	server.Main(map[string]server.Open{"sdk": sdk(), "sdk-guard": sdk(site.Guard(known)), "sdk-auth": sdk(ownGuard(known))})
}

// ownGuard is the one that the SDK brings.
func ownGuard(known *site.Tokens) echo.MiddlewareFunc {
	return echo.WrapMiddleware(auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if !known.Knows(token) {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "somebody", Expiration: time.Now().Add(time.Hour)}, nil
	}, nil))
}

// sdk is the SDK's own handlers with the same settings, behind what is given.
func sdk(behind ...echo.MiddlewareFunc) server.Open {
	return func(server.Order, string) (server.Site, error) { return unguarded(behind...), nil }
}

func unguarded(behind ...echo.MiddlewareFunc) server.Site {
	greeter := greeter.New()
	get := func(*http.Request) *mcp.Server { return greeter }
	stateful := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		EventStore: mcp.NewMemoryEventStore(nil), SessionTimeout: time.Hour, MaxRequestBodyBytes: 1 << 20, DisableLocalhostProtection: true,
	})
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: 1 << 20, DisableLocalhostProtection: true,
	})
	legacy := mcp.NewSSEHandler(get, nil)
	e := site.NewEcho()
	e.Use(behind...)
	e.Any("/mcp", func(c echo.Context) error {
		next := http.Handler(stateful)
		switch r := c.Request(); {
		case r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
			next = stateless
		case r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") == "", r.URL.Query().Has("sessionid"):
			next = legacy
		}
		next.ServeHTTP(c.Response(), c.Request())
		return nil
	})
	return server.Site{Handler: e, Close: server.Still}
}
