package guard

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/toolset"
)

// Sessions binds session ids to their owners; seal.KeyRing and *peers.Peers are two.
type Sessions interface {
	BindSession(session, owner string) (string, error)
	OpenSession(bound, owner string) (session string, ok bool, err error)
}

// sessionOf returns the session id of a request, "" if it has none.
type sessionOf func(r *http.Request) string

// InQuery returns the session id of a message of HTTP+SSE.
func InQuery(r *http.Request) string { return r.URL.Query().Get("sessionid") }

// elsewhere returns a route that passes a request on to the replica that has its session.
func (g *Guard) elsewhere(next route, session sessionOf) route {
	if g.options.Peers == nil {
		return next
	}
	return func(out *stream.Writer, r *http.Request, b message.Body) {
		identity, bound := out.Identity(), session(r)
		if bound != "" { // a session gets the same headers here and at another replica
			r.Header = peers.Headers(r.Header)
		}
		at := g.options.Peers.Elsewhere(bound, identity.Caller)
		if at == "" {
			next(out, r, b)
			return
		}
		identity.Forwarded = true
		pass := peers.Pass{
			Caller:    identity.Caller,
			Host:      oauth.DigestOf(identity.Host.Reveal()),
			RequestID: identity.RequestID,
			Session:   bound,
		}
		pass.Caller.Tools = toolset.Pins{} // which could be too long for a header, and were compared here
		var w http.ResponseWriter = out
		if b.Refused != nil { // it goes on only for the errors that the server gets
			w = stream.Discard(out)
		}
		g.options.Peers.Forward(w, r, b.Encode(), pass, at)
	}
}

// answerPeer answers a request that another replica has authorized, and reports whether it is one.
func (g *Guard) answerPeer(c echo.Context, to Backend, next route, session sessionOf) (answered bool) {
	pass, ok := g.options.Peers.Open(c.Request(), session(c.Request()))
	if !ok {
		return false
	}
	out, r := g.responses.NewWriter(c.Response(), c.Request(), c.Request().Context())
	defer out.Finish()
	identity := &stream.Identity{Resource: g.options.Resource, HostDigest: pass.Host}
	identity.Caller, identity.RequestID = pass.Caller, pass.RequestID
	out.Identify(identity)
	var b message.Body
	if r.Method == http.MethodPost {
		text, err := out.ReadBody(g.options.MaxRequestBody, g.options.Bodies)
		if err == nil && sha256.Sum256(text) != pass.Digest { // a client sends it, and counts without the pass
			c.Request().Body = io.NopCloser(bytes.NewReader(text))
			return false
		}
		out.Header().Set(peers.Header, pass.Answer)
		if err != nil {
			refuseBody(out.ResponseWriter, r, err)
			return true
		}
		b = to.Read(out, r, text)
	}
	out.Header().Set(peers.Header, pass.Answer)
	g.answer(out, r, b, next)
	return true
}
