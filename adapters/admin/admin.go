// Package admin is the admin listener of a service: health, readiness (Check), metrics, profiles,
// the calls and the connection trace (Overview), and the grants (Grants). New returns the handler.
// No response contains a secret.
package admin

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the style
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/internal/look"
	"github.com/pasteport/pasteport/domain/uri"
)

// Route is a path of the admin listener, for GET and HEAD.
type Route struct {
	Path  string
	Serve http.HandlerFunc
	Form  http.HandlerFunc // for POST from a page of this listener; nil for none
}

// Options configure the admin listener. Address is its listen address, whose host name requests may
// use besides localhost and loopback. Routes are available on loopback addresses only.
type Options struct {
	Address string
	Checks  []Check
	Metrics http.Handler
	Routes  []Route
}

// New returns the handler of the admin listener.
func New(o Options) http.Handler {
	site := echo.New()
	guard := originGuard{hostOf(o.Address), map[string]bool{}}
	if all, err := netip.ParseAddr(guard.name); err == nil && all.IsUnspecified() { // no host name
		guard.name = ""
	}
	site.Pre(guard.wrap)
	mount := func(routes []Route, only ...echo.MiddlewareFunc) {
		for _, route := range routes {
			site.Match([]string{http.MethodGet, http.MethodHead}, route.Path, echo.WrapHandler(route.Serve), only...)
			if route.Form != nil {
				guard.forms[route.Path] = true
				site.POST(route.Path, echo.WrapHandler(route.Form), only...)
			}
		}
	}
	mount([]Route{
		{Path: "/healthz", Serve: func(w http.ResponseWriter, _ *http.Request) {
			writeReport(w, http.StatusOK, Readiness{Status: "ok"})
		}},
		{Path: "/readyz", Serve: ready(o.Checks)},
		{Path: "/metrics", Serve: o.Metrics.ServeHTTP},
	})
	mount(slices.Concat([]Route{
		{Path: "/debug/pprof/profile", Serve: pprof.Profile},
		{Path: "/debug/pprof/symbol", Serve: pprof.Symbol},
		{Path: "/debug/pprof/trace", Serve: pprof.Trace},
		{Path: "/debug/pprof/*", Serve: pprof.Index}, // without cmdline, because flags may contain a secret
	}, o.Routes), loopbackOnly)
	return site
}

// originGuard refuses requests from web pages of other sites, by Origin and Sec-Fetch-Site, and
// requests after DNS rebinding, by Host.
type originGuard struct {
	name  string
	forms map[string]bool // the paths that take POST
}

func (g originGuard) wrap(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, header := c.Request(), c.Response().Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		isForm := r.Method == http.MethodPost && g.forms[r.URL.Path]
		fromPage := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") == "same-origin"
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !isForm:
			header.Set("Allow", "GET, HEAD")
			return c.String(http.StatusMethodNotAllowed, "this path is read-only: use GET\n")
		case !g.allowsHost(r):
			return c.String(http.StatusForbidden,
				"the Host header is not a name of the admin listener: use the address of admin-addr, or localhost\n")
		case crossOrigin(r):
			return c.String(http.StatusForbidden,
				"pages of other sites cannot use the admin listener: open the address directly\n")
		case isForm && !fromPage: // after crossOrigin, the page is of this listener
			return c.String(http.StatusForbidden, "only a page of the admin listener can send this form\n")
		}
		return next(c)
	}
}

// loopbackOnly refuses requests to addresses other than loopback, because these routes contain
// personal data.
func loopbackOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !isLocal(c.Request()) {
			return c.String(http.StatusForbidden,
				"this page is available on a loopback address only: open it on the computer of the service\n")
		}
		return next(c)
	}
}

// isLocal reports whether a request came to a loopback address.
func isLocal(r *http.Request) bool {
	local, known := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return known && local.IP.IsLoopback()
}

// allowsHost accepts the names of this computer, the configured name and the local address of the
// connection. An attacker cannot control any of them.
func (g originGuard) allowsHost(r *http.Request) bool {
	host := hostOf(r.Host)
	if host == "localhost" || host != "" && host == g.name {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if address.Unmap().IsLoopback() {
		return true
	}
	local, known := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return known && local.AddrPort().Addr().Unmap() == address.Unmap()
}

// crossOrigin reports whether a page of another site sent the request.
func crossOrigin(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Origin"), func(origin string) bool {
		return origin != "http://"+r.Host
	}) || slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"), func(site string) bool {
		return site != "same-origin" && site != "none"
	})
}

// hostOf returns the host of host:port in lower case, without brackets.
func hostOf(address string) string {
	return strings.ToLower(strings.Trim(uri.HostOf(address), "[]"))
}

//go:embed admin.css
var ownStyle string

var style = look.Style + ownStyle

// stylePolicy is a Content-Security-Policy that allows only the style of the page and its forms.
var stylePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

func write(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	w.Header().Set("Content-Security-Policy", stylePolicy)
	templ.Handler(page, templ.WithStatus(status)).ServeHTTP(w, r) // renders the whole page before it writes
}

func storeFails(w http.ResponseWriter) {
	http.Error(w, "the store cannot be read; see /readyz", http.StatusServiceUnavailable)
}

// Slot counts the calls that ended in a quarter of an hour.
type Slot struct {
	Begin    time.Time
	Answered int
	Refused  int
	Failed   int
}

func (s Slot) calls() int { return s.Answered + s.Refused + s.Failed }

// Activity is the last day of an MCP server, the oldest slot first.
type Activity struct {
	Name, Resource string
	Slots          []Slot
}

// busiest returns the slot with the most calls.
func (a Activity) busiest() Slot {
	return slices.MaxFunc(a.Slots, func(a, b Slot) int { return cmp.Compare(a.calls(), b.calls()) })
}

// sentence says in words what the plot shows.
func (a Activity) sentence() string {
	var sum Slot
	for _, slot := range a.Slots {
		sum.Answered += slot.Answered
		sum.Refused += slot.Refused
		sum.Failed += slot.Failed
	}
	if sum.calls() == 0 {
		return "No calls."
	}
	busiest := a.busiest()
	return fmt.Sprintf("Calls: %d answered, %d refused, %d failed. Most in a quarter of an hour: %d, from %s UTC.",
		sum.Answered, sum.Refused, sum.Failed, busiest.calls(), busiest.Begin.UTC().Format("15:04"))
}

// height returns the height of a bar, of 100 for the busiest slot.
func (a Activity) height(calls int) string {
	return fmt.Sprintf("%.1f", 100*float64(calls)/float64(max(1, a.busiest().calls())))
}
