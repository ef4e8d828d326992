package http

import (
	"context"
	"net/netip"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
)

// peerOf is the socket's peer unless the site says which proxies it trusts; Echo's own default would believe anybody (B6).
func peerOf(c echo.Context) string {
	if c.Echo().IPExtractor != nil {
		return c.RealIP()
	}
	return echo.ExtractIPDirect()(c.Request())
}

// guesser is by whose networks wrong tokens are counted. All peers without an IP address, which a host's own IPExtractor may return, count
// as one.
func (e *Endpoints) guesser(c echo.Context) oauth.Requester {
	peer, err := netip.ParseAddr(peerOf(c))
	if err != nil {
		peer = netip.IPv4Unspecified()
	}
	return oauth.RequesterAt(peer, e.server.Settings().Limits)
}

// requester is for whom other limits count. This computer has none: it is a proxy that trusted-proxies does not name, and everybody
// would share its limits.
func (e *Endpoints) requester(c echo.Context) oauth.Requester {
	if peer, err := netip.ParseAddr(peerOf(c)); err == nil && peer.Unmap().IsLoopback() {
		return oauth.Requester{}
	}
	return e.guesser(c)
}

// requesterOf is the request's context, which names for whom clients are looked up (C21).
func (e *Endpoints) requesterOf(c echo.Context) context.Context {
	return oauth.WithRequester(c.Request().Context(), e.requester(c))
}
