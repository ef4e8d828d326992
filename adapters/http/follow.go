package http

import (
	"context"
	"crypto/rand"
	"net/netip"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/quota"
)

// Follower records the steps that requests reach in the Journal, or nothing if Journal is nil.
type Follower struct {
	Journal attempt.Journal
	Always  bool // Begin makes a Recorder even if Journal is nil, for the audit
}

// Middleware records the steps of a request when its response begins.
func (f Follower) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	if f.Journal == nil {
		return next
	}
	return func(c echo.Context) error {
		recorder := recorderOf(c)
		recorder.Journal = f.Journal
		c.Response().Before(func() { recorder.Answer(c.Response().Status) })
		defer recorder.End()
		return next(c)
	}
}

// Begin returns a context with a Recorder, for a handler that passes it on instead of that of c,
// and whose response calls Recorder.Answer. For the context of c, RequestID is empty unless
// Identify ran before.
func (f Follower) Begin(c echo.Context) context.Context {
	if f.Journal == nil && !f.Always {
		return c.Request().Context()
	}
	ctx, _ := withRecorder(c)
	attempt.From(ctx).Journal = f.Journal
	return ctx
}

// recorderOf returns the Recorder of a request, a new one when it has none.
func recorderOf(c echo.Context) *attempt.Recorder {
	ctx, begun := withRecorder(c)
	if begun {
		c.SetRequest(c.Request().WithContext(ctx))
	}
	return attempt.From(ctx)
}

// withRecorder returns the context of a request with its Recorder; begun reports whether the
// Recorder is new.
func withRecorder(c echo.Context) (ctx context.Context, begun bool) {
	r := c.Request()
	if RequestID(r.Context()) != "" {
		return r.Context(), false
	}
	return attempt.Begin(r.Context(), newRequestID(), networkOf(c.RealIP()), r.UserAgent()), true
}

// Identify gives each request a new id, for RequestID and the header X-Request-Id of the response.
// It ignores the header of the request.
func Identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderXRequestID, recorderOf(c).Request())
		return next(c)
	}
}

// RequestID returns the id of the request of ctx, "" when it has none.
func RequestID(ctx context.Context) string { return attempt.From(ctx).Request() }

func newRequestID() string { return rand.Text()[:12] }

// networkOf returns the /24 or /48 network of a peer; a whole address would be personal data.
func networkOf(peer string) string {
	address, err := netip.ParseAddr(peer)
	if err != nil {
		return ""
	}
	bits := 48
	if address = address.Unmap(); address.Is4() {
		bits = 24
	}
	network, _ := address.WithZone("").Prefix(bits)
	return network.String()
}

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
