package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// route answers a request that was admitted.
type route func(out *response.Writer, r *http.Request, b message.Body)

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
		if g.refuseQuery(ctx, out, r) || !g.guard(ctx, out, r) || g.refuseUnrecorded(out, r) {
			return nil
		}
		audited := g.audit.begin(out, r)
		b, admitted := g.admit(to, out, r)
		audited.read(b)
		defer audited.end(ctx)
		if !admitted {
			return nil
		}
		g.answer(out, r, b, forwarding)
		return nil
	}
}

// answer answers an admitted request.
func (g *Guard) answer(out *response.Writer, r *http.Request, b message.Body, next route) {
	out.Begin(b.ID(), b.Listens() || r.Method == http.MethodGet)
	serve(out, r, b, next)
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

// refuseUnrecorded refuses a message while the audit cannot record it.
func (g *Guard) refuseUnrecorded(out *response.Writer, r *http.Request) (refused bool) {
	if g.options.AuditReady == nil || r.Method != http.MethodPost || g.options.AuditReady() == nil {
		return false
	}
	connection.From(r.Context()).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "V5",
		"the audit cannot record the call"))
	response.Unavailable(out, "Calls cannot be recorded just now")
	return true
}

// admit reads the body and checks the scopes that it needs. It checks the grant again after a slow
// body.
func (g *Guard) admit(to Backend, out *response.Writer, r *http.Request) (b message.Body, admitted bool) {
	if r.Method == http.MethodPost {
		// Before any response, because not all proxies can read one while they send.
		text, err := out.ReadBody(g.options.MaxRequestBody, g.options.Bodies)
		if err != nil {
			refuseBody(out.ResponseWriter, r, err)
			return b, false
		}
		if out.HasEnded() {
			g.challenge.refuse(out.ResponseWriter, g.invalid)
			return b, false
		}
		if b = to.Read(out, r, text); b.Refused != nil {
			b.Refused.Trace(connection.From(r.Context()))
			if len(b.Refused.Answers) == 0 {
				b.Refused.Write(out)
				return b, false
			}
		}
	}
	if needed, lacking := g.access.MissingScopes(out.Identity().Caller, b.Names.Tools, b.Arguments()...); lacking {
		g.refuseCaller(out.ResponseWriter, r, insufficientScope(needed))
		return b, false
	}
	if b.Refused != nil {
		return b, true
	}
	if wait := g.takeCalls(out.Identity().Caller, b); wait > 0 {
		g.refuseCalls(out, r, b, wait)
		return b, false
	}
	return b, !g.refuseChanged(out.ResponseWriter, r, b)
}

// serve passes a body to next. For a refused response to a request of the server it passes a
// JSON-RPC error instead, because the server would wait for the response forever.
func serve(out *response.Writer, r *http.Request, b message.Body, next route) {
	if b.Refused == nil {
		next(out, r, b)
		return
	}
	for _, answer := range b.Refused.Answers {
		if out.IsAwaited() {
			next(out, r.Clone(r.Context()), message.Body{Messages: []message.Message{answer}, Refused: b.Refused})
		}
	}
	if out.IsAwaited() {
		b.Refused.Write(out)
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
	case errors.As(err, new(message.TooLargeError)):
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "G19", err.Error()))
		message.WriteError(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large: "+err.Error())
	case errors.Is(err, message.ErrNoMemory):
		recorder.Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "G19", err.Error()))
		response.Unavailable(w, response.TooManyBodies)
	default:
		message.WriteError(w, http.StatusBadRequest, "Bad Request: the body cannot be read")
	}
}
