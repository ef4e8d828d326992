// Package admin is the admin listener of a service: health, readiness (Check), metrics, profiles and the connection trace (Connections). New
// returns the handler. No response contains a secret.
package admin

import (
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/labstack/echo/v4"
)

// Route is a path of the admin listener, for GET and HEAD.
type Route struct {
	Path  string
	Serve http.HandlerFunc
}

// Options configure the admin listener. Address is its listen address, whose host name requests may use besides localhost and loopback. Routes are
// available on loopback addresses only.
type Options struct {
	Address string
	Checks  []Check
	Metrics http.Handler
	Routes  []Route
}

// New returns the handler of the admin listener.
func New(o Options) http.Handler {
	site := echo.New()
	site.Pre(newOriginGuard(o.Address).wrap)
	mount := func(routes []Route, only ...echo.MiddlewareFunc) {
		for _, route := range routes {
			site.Match([]string{http.MethodGet, http.MethodHead}, route.Path, echo.WrapHandler(route.Serve), only...)
		}
	}
	mount([]Route{
		{"/healthz", healthy},
		{"/readyz", ready(o.Checks)},
		{"/metrics", o.Metrics.ServeHTTP},
	})
	mount(slices.Concat([]Route{
		{"/debug/pprof/profile", pprof.Profile},
		{"/debug/pprof/symbol", pprof.Symbol},
		{"/debug/pprof/trace", pprof.Trace},
		{"/debug/pprof/*", pprof.Index}, // without cmdline, because flags may contain a secret
	}, o.Routes), loopbackOnly)
	return site
}
