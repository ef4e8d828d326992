// Command sdk is the official Go SDK's own handlers, without a guard and behind guards other than
// Pasteport's.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/greeter"
	"github.com/pasteport/pasteport/bench/server/site"
)

func main() {
	known := site.Known(load.StandingToken)
	server.Main(map[string]server.Open{"sdk": sdk(), "sdk-guard": sdk(site.Guard(known)),
		"sdk-auth": sdk(ownGuard(known))})
}

// ownGuard is the SDK's RequireBearerToken.
func ownGuard(known *site.Tokens) echo.MiddlewareFunc {
	return echo.WrapMiddleware(
		auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			if !known.Knows(token) {
				return nil, auth.ErrInvalidToken
			}
			return &auth.TokenInfo{UserID: "somebody", Expiration: time.Now().Add(time.Hour)}, nil
		}, nil))
}

// sdk serves the SDK's own handlers behind the given middleware.
func sdk(behind ...echo.MiddlewareFunc) server.Open {
	return func(server.Order, string) (server.Site, error) {
		e := site.NewEcho()
		e.Use(behind...)
		e.Any("/mcp", echo.WrapHandler(greeter.Handler()))
		return server.Site{Handler: e, Close: server.Still}, nil
	}
}
