package http

import (
	"context"
	"net/netip"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/quota"
)

// RequesterOf returns the requester for which wrong tokens count. An IPExtractor of the host may
// return something other than an IP address; all such peers count as one.
func (e *Endpoints) RequesterOf(c echo.Context) quota.Requester {
	peer, err := netip.ParseAddr(c.RealIP())
	if err != nil {
		peer = netip.IPv4Unspecified()
	}
	return quota.RequesterAt(peer, e.server.Settings.Limits.UnlimitedNetworks)
}

// contextOf returns the context of the request with the requester for which all other limits count.
// No limit applies to a peer on this computer: it is probably a proxy that trusted-proxies does not
// list, and all people would share its limits.
func (e *Endpoints) contextOf(c echo.Context) context.Context {
	requester := e.RequesterOf(c)
	if peer, err := netip.ParseAddr(c.RealIP()); err == nil && peer.Unmap().IsLoopback() {
		requester = quota.Requester{}
	}
	return quota.WithRequester(c.Request().Context(), requester)
}
