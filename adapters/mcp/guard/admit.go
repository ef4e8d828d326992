package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// route answers a request that was admitted.
type route func(out *response.Writer, r *http.Request, m jsonrpc.Message)

// protect checks a request and passes it to a route of the server. The gate and the guard come
// before the body is read. The steps are calls in sequence and not nested handlers, because idle
// streams keep their stack.
func (g *Guard) protect(to Backend, next route, session sessionOf) echo.HandlerFunc {
	forwarding := g.elsewhere(next, session)
	return func(c echo.Context) error {
		if g.answerPeer(c, to, next, session) {
			return nil
		}
		ctx := g.options.Begin(c)
		out, r := g.responses.NewWriter(c.Response(), c.Request(), ctx)
		defer out.Finish()
		if !g.gate.admits(out, r) {
			return nil
		}
		if g.isBrowser(r) {
			return g.welcome(ctx, c)
		}
		if g.refuseQuery(ctx, out, r) || !g.guard(ctx, out, r) {
			return nil
		}
		audited := g.audit.begin(out, r)
		m, admitted := g.admit(to, out, r)
		audited.read(m)
		defer audited.end(ctx)
		if !admitted {
			return nil
		}
		g.answer(to, out, r, m, forwarding)
		return nil
	}
}

// answer answers an admitted request.
func (g *Guard) answer(to Backend, out *response.Writer, r *http.Request, m jsonrpc.Message, next route) {
	out.Begin(m.ID, m.Listen || r.Method == http.MethodGet)
	serve(to, out, r, m, next)
	g.answerEnded(out)
}

// refuseQuery refuses parameters without an effect, before a person logs in for the wrong address.
func (g *Guard) refuseQuery(ctx context.Context, out *response.Writer, r *http.Request) (refused bool) {
	if g.options.Parameter == nil {
		return false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	for name := range query {
		if name != "access_token" && !g.options.Parameter(name) { // which the guard refuses
			err = fmt.Errorf("this server takes no query parameter %.100q: remove it from the address, or ask the "+
				"operator to add it to forward-parameters", name)
		}
	}
	if err == nil {
		return false
	}
	connection.From(ctx).RefuseAt(connection.Call, oauth.Refuse(oauth.InvalidRequest, "U34",
		"the address has a query that cannot be read, or a parameter that forward-parameters does not name"))
	response.WriteError(out, http.StatusBadRequest, oauth.InvalidRequest.Code(), err.Error())
	return true
}

// admit reads the body and checks the scopes that it needs. It checks the grant again after a slow
// body.
func (g *Guard) admit(to Backend, out *response.Writer, r *http.Request) (m jsonrpc.Message, admitted bool) {
	if r.Method == http.MethodPost {
		// Before any response, because not all proxies can read one while they send.
		body, err := out.ReadBody(g.options.MaxRequestBody, g.options.Bodies)
		if err != nil {
			refuseBody(out.ResponseWriter, r, err)
			return m, false
		}
		if m = to.Read(out, r, body); m.Refused != nil {
			m.Refused.Trace(connection.From(r.Context()))
			if len(m.Refused.Answers) == 0 {
				to.Refuse(out, r, m)
				return m, false
			}
		}
	}
	if out.HasEnded() {
		g.challenge.refuse(out.ResponseWriter, g.invalid)
		return m, false
	}
	if needed, lacking := g.access.MissingScopes(out.Identity().Caller, m.Tools, m.Arguments...); lacking {
		g.refuseCaller(out.ResponseWriter, r, insufficientScope(needed))
		return m, false
	}
	if m.Refused != nil {
		return m, true
	}
	if wait := g.takeCalls(out.Identity().Caller, m); wait > 0 {
		g.refuseCalls(out, r, m, wait)
		return m, false
	}
	admitted = g.admitTools(to, out, r, &m)
	return m, admitted
}

// serve passes a message to next. For a refused response to a request of the server it passes a
// JSON-RPC error instead, because the server would wait for the response forever.
func serve(to Backend, out *response.Writer, r *http.Request, m jsonrpc.Message, next route) {
	if m.Refused == nil {
		next(out, r, m)
		return
	}
	for _, answer := range m.Refused.Answers {
		if out.IsAwaited() {
			other, replaced := m.Replace(r, answer)
			next(out, replaced, other)
		}
	}
	if out.IsAwaited() {
		to.Refuse(out, r, m)
	}
}

// answerEnded answers a request whose response ended before it began; net/http would send an empty
// 200.
func (g *Guard) answerEnded(out *response.Writer) {
	switch cause := out.Unanswered(); {
	case errors.Is(cause, response.ErrEnded):
		g.challenge.refuse(out.ResponseWriter, g.invalid)
	case errors.Is(cause, response.ErrDraining):
		response.Unavailable(out.ResponseWriter, response.ShuttingDown)
	case errors.Is(cause, response.ErrEvicted):
		response.Unavailable(out.ResponseWriter, "There are too many open streams")
	}
}

// refuseBody answers a request whose body was not read to its end.
func refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	switch recorder := connection.From(r.Context()); {
	case errors.As(err, new(jsonrpc.TooLargeError)):
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "G19", err.Error()))
		jsonrpc.WriteError(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large: "+err.Error())
	case errors.Is(err, jsonrpc.ErrNoMemory):
		recorder.Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "G19", err.Error()))
		response.Unavailable(w, response.TooManyBodies)
	default:
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: the body cannot be read")
	}
}
