package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
)

// gate keeps web pages away that a browser on the operator's computer may have open: other sites by Origin and Sec-Fetch-Site,
// names that were rebound to this address by Host.
type gate struct{ name string }

func newGate(address string) gate {
	name := hostOf(address)
	if all, err := netip.ParseAddr(name); err == nil && all.IsUnspecified() { // which names no computer
		name = ""
	}
	return gate{name}
}

func (g gate) wrap(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, header := c.Request(), c.Response().Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			header.Set("Allow", "GET, HEAD")
			return c.String(http.StatusMethodNotAllowed, "this listener is for reading: ask with GET\n")
		case !g.knows(r):
			return c.String(http.StatusForbidden, "this name is not one of the admin listener: ask for the address of admin-addr, or for localhost\n")
		case foreign(r):
			return c.String(http.StatusForbidden, "other sites may not ask the admin listener: open the address by itself\n")
		}
		return next(c)
	}
}

// hereOnly keeps to this computer what tells of people, wherever the listener can be reached.
func hereOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		local, known := c.Request().Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if !known || !local.IP.IsLoopback() {
			return c.String(http.StatusForbidden, "this is told on a loopback address only: ask for it on the computer of the service\n")
		}
		return next(c)
	}
}

// knows takes the names of this computer, the configured one, and the address to which the request came; an attacker can let a
// name of his own point here, but not any of these.
func (g gate) knows(r *http.Request) bool {
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

// foreign reports that another site's page stands behind the request.
func foreign(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			return true
		}
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return true
		}
	}
	return false
}

// hostOf is the host of host:port, comparable.
func hostOf(address string) string {
	host := address
	if cut, _, err := net.SplitHostPort(address); err == nil {
		host = cut
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
