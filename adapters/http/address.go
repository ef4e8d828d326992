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

// addressOf is what guesses are counted by; an IPv6 peer counts with its whole /64.
func addressOf(c echo.Context) string {
	peer := peerOf(c)
	address, err := netip.ParseAddr(peer)
	if err != nil || address.Unmap().Is4() {
		return peer
	}
	return netip.PrefixFrom(address, 64).Masked().String()
}

// strangerOf is the address that budgets are kept for. This computer has none: it is a proxy that the site was not told of,
// and then everybody would share one budget.
func strangerOf(c echo.Context) string {
	if peer, err := netip.ParseAddr(peerOf(c)); err == nil && peer.Unmap().IsLoopback() {
		return ""
	}
	return addressOf(c)
}

// requesterOf is the request's context, which says for whom clients are looked up (C21).
func requesterOf(c echo.Context) context.Context {
	return oauth.WithRequester(c.Request().Context(), strangerOf(c))
}

// limited turns an address away that has failed too often (D31). Only refusals count; an outage is nobody's fault.
func (e *Endpoints) limited(serve endpoint) endpoint {
	return func(c echo.Context) error {
		address, now := strangerOf(c), e.now()
		if address == "" {
			return serve(c)
		}
		if wait := e.failures.Wait(address, now); wait > 0 {
			return oauth.RefuseFor(wait, oauth.TooManyFailures, "D31", "Too many requests have failed")
		}
		err := serve(c)
		if kind, refused := oauth.KindOf(err); refused && kind.Code() != oauth.TemporarilyUnavailable.Code() {
			e.failures.Failed(address, now)
		}
		return err
	}
}
