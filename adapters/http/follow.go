package http

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Follow notes the steps that requests reach, as soon as their answers begin. A nil journal notes nothing.
func Follow(journal trace.Journal, now func() time.Time) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if journal == nil {
			return next
		}
		return func(c echo.Context) error {
			origin := trace.Origin{Request: incidentOf(c), Address: networkOf(c), Agent: c.Request().UserAgent()}
			ctx := trace.Begin(c.Request().Context(), journal, now, origin)
			c.SetRequest(c.Request().WithContext(ctx))
			walk := trace.From(ctx)
			c.Response().Before(func() { walk.Answer(c.Response().Status) })
			defer walk.End()
			return next(c)
		}
	}
}

// requestKey is where a request's context carries its id.
type requestKey struct{}

// Identify gives each request an id, in the answer and for RequestID; one that a stranger sends is not taken.
func Identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := newIncident()
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), requestKey{}, id)))
		return next(c)
	}
}

// RequestID returns the id that Identify gave to the request under ctx, "" when there is none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// incidentOf is the one id under which the log, the trace and the person's page know a request.
func incidentOf(c echo.Context) string {
	ctx := c.Request().Context()
	return cmp.Or(trace.From(ctx).Request(), RequestID(ctx), newIncident())
}

func newIncident() string { return rand.Text()[:12] }

// networkOf is where a request comes from, no closer than tells connections apart.
func networkOf(c echo.Context) string {
	peer, err := netip.ParseAddr(peerOf(c))
	if err != nil {
		return ""
	}
	bits := 48
	if peer = peer.Unmap(); peer.Is4() {
		bits = 24
	}
	network, _ := peer.WithZone("").Prefix(bits)
	return network.String()
}

// absent keeps a site's catch-all route from answering for documents that this server does not have (F4, F5).
func absent(kind trace.Kind, rule, why string) echo.HandlerFunc {
	return func(c echo.Context) error {
		walk := trace.From(c.Request().Context())
		walk.Reach(kind)
		walk.Refuse(oauth.Refuse(oauth.InvalidRequest, rule, why))
		return c.NoContent(http.StatusNotFound)
	}
}

// noting tells the trace before the channel tells whoever asked.
func noting(step trace.Kind, fail channel) channel {
	return func(c echo.Context, err error) error {
		trace.From(c.Request().Context()).RefuseAt(step, err)
		return fail(c, err)
	}
}
