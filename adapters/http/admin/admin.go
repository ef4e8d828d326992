// Package admin answers the operator of a running service: whether it lives and is ready, what it counts, and where it spends its
// time. It listens on an address of its own and never tells a secret.
package admin

import (
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/labstack/echo/v4"
)

// Route is one page of the admin listener; it is asked with GET and HEAD only.
type Route struct {
	Path  string
	Serve http.HandlerFunc
}

// Options are what there is to tell. Address is where it listens; its host is a name that requests may use besides those of this
// computer. Routes are for people on this computer only.
type Options struct {
	Address string
	Checks  []Check
	Metrics http.Handler
	Routes  []Route
}

// New mounts every route of the admin listener. This is its one route table.
func New(o Options) http.Handler {
	site := echo.New()
	site.Pre(newGate(o.Address).wrap)
	mount := func(routes []Route, only ...echo.MiddlewareFunc) {
		for _, route := range routes {
			site.Match([]string{http.MethodGet, http.MethodHead}, route.Path, echo.WrapHandler(route.Serve), only...)
		}
	}
	mount([]Route{
		{"/healthz", lives},
		{"/readyz", ready(o.Checks)},
		{"/metrics", o.Metrics.ServeHTTP},
	})
	mount(slices.Concat([]Route{
		{"/debug/pprof/profile", pprof.Profile},
		{"/debug/pprof/symbol", pprof.Symbol},
		{"/debug/pprof/trace", pprof.Trace},
		{"/debug/pprof/*", pprof.Index}, // without the command line, in which there may be a secret
	}, o.Routes), hereOnly)
	return site
}
