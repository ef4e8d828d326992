package guard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// route answers a request that was admitted.
type route func(out *stream.Writer, r *http.Request, b message.Body)

// protect checks a request and passes it to a route of the server. The gate and the guard come
// before the body is read. The steps are calls in sequence and not nested handlers, because idle
// streams keep their stack.
func (g *Guard) protect(to Backend, next route, session sessionOf) echo.HandlerFunc {
	forwarding := g.elsewhere(next, session) // next, or the replica that has the session
	return func(c echo.Context) error {
		if g.answerPeer(c, to, next, session) { // another replica has admitted the request
			return nil
		}
		ctx := g.options.Begin(c)
		out, r := g.responses.NewWriter(c.Response(), c.Request(), ctx)
		defer out.Finish()
		if !g.gate.admits(out, r) {
			return nil
		}
		// Clients of MCP ask for JSON or an event stream.
		isBrowser := r.Method == http.MethodGet && strings.HasPrefix(r.Header.Get("Accept"), "text/html")
		if g.options.Welcome != nil && isBrowser && r.Header["Authorization"] == nil {
			attempt.From(ctx).Record(attempt.Challenge) // as of any request without a token
			c.Response().Header().Set("WWW-Authenticate", g.challenge(g.missing))
			return g.options.Welcome(c, g.missing.status)
		}
		if g.refuseQuery(ctx, out, r) || !g.identify(ctx, out, r) || g.refuseUnrecorded(out, r) {
			return nil
		}
		audited := g.beginAudit(out, r)
		b, admitted := g.admit(to, out, r)
		defer audited.end(ctx, b)
		if !admitted {
			return nil
		}
		g.answer(out, r, b, forwarding)
		return nil
	}
}

// answer answers an admitted request. For a refused response to a request of the server it passes a
// JSON-RPC error instead, because the server would wait for the response forever.
func (g *Guard) answer(out *stream.Writer, r *http.Request, b message.Body, next route) {
	out.Begin(b.ID(), b.Listens() || r.Method == http.MethodGet)
	if b.Refused == nil {
		next(out, r, b)
	} else {
		for _, answer := range b.Refused.Answers {
			if out.IsAwaited() {
				next(out, r.Clone(r.Context()), message.Body{Messages: []message.Message{answer}, Refused: b.Refused})
			}
		}
		if out.IsAwaited() {
			b.Refused.Write(out)
		}
	}
	g.answerEnded(out)
}

// refuseQuery refuses parameters without an effect, before a person logs in for the wrong address.
func (g *Guard) refuseQuery(ctx context.Context, out *stream.Writer, r *http.Request) (refused bool) {
	if g.options.Parameter == nil {
		return false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	for name := range query {
		if name != "access_token" && !g.options.Parameter(name) { // the guard refuses access_token
			err = fmt.Errorf("this server takes no query parameter %.100q: remove it from the address, or ask the "+
				"operator to add it to forward-parameters", name)
		}
	}
	if err == nil {
		return false
	}
	attempt.From(ctx).RefuseAt(attempt.Call, oauth.Refuse(oauth.InvalidRequest, "U34",
		"the address has a query that cannot be read, or a parameter that forward-parameters does not name"))
	stream.WriteError(out, http.StatusBadRequest, oauth.InvalidRequest.Code(), err.Error())
	return true
}

// refuseUnrecorded refuses a message while the audit cannot record it.
func (g *Guard) refuseUnrecorded(out *stream.Writer, r *http.Request) (refused bool) {
	if g.options.AuditReady == nil || r.Method != http.MethodPost || g.options.AuditReady() == nil {
		return false
	}
	attempt.From(r.Context()).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "V5",
		"the audit cannot record the call"))
	stream.Unavailable(out, "Calls cannot be recorded just now")
	return true
}

// admit reads the body and checks the scopes that it needs. It checks the grant again after a slow
// body. It admits a refused body with answers, because the server waits for them.
func (g *Guard) admit(to Backend, out *stream.Writer, r *http.Request) (b message.Body, admitted bool) {
	if r.Method == http.MethodPost {
		// Before any response, because not all proxies can read one while they send.
		text, err := out.ReadBody(g.options.MaxRequestBody, g.options.Bodies)
		if err != nil {
			refuseBody(out.ResponseWriter, r, err)
			return b, false
		}
		if out.HasEnded() {
			g.refuse(out.ResponseWriter, g.invalid)
			return b, false
		}
		if b = to.Read(out, r, text); b.Refused != nil {
			b.Refused.Trace(attempt.From(r.Context()))
			if len(b.Refused.Answers) == 0 {
				b.Refused.Write(out)
				return b, false
			}
		}
	}
	if needed, lacking := g.MissingScopes(out.Identity().Caller, b.Names.Tools, b.Arguments()...); lacking {
		g.refuseCaller(out.ResponseWriter, r, insufficientScope.with(needed))
		return b, false
	}
	return b, b.Refused != nil || !g.refuseCalls(out, r, b) && !g.refuseChanged(out.ResponseWriter, r, b)
}

// answerEnded answers a request whose response ended before it began; net/http would send an empty
// 200.
func (g *Guard) answerEnded(out *stream.Writer) {
	switch cause := out.Unanswered(); {
	case errors.Is(cause, stream.ErrEnded):
		g.refuse(out.ResponseWriter, g.invalid)
	case errors.Is(cause, stream.ErrDraining):
		stream.Unavailable(out.ResponseWriter, stream.ShuttingDown)
	case errors.Is(cause, stream.ErrEvicted):
		stream.Unavailable(out.ResponseWriter, "There are too many open streams")
	}
}

// refuseBody answers a request whose body was not read to its end.
func refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	switch recorder := attempt.From(r.Context()); {
	case errors.As(err, new(message.TooLargeError)):
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "G19", err.Error()))
		message.WriteError(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large: "+err.Error())
	case errors.Is(err, message.ErrNoMemory):
		recorder.Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "G19", err.Error()))
		stream.Unavailable(w, stream.TooManyBodies)
	default:
		message.WriteError(w, http.StatusBadRequest, "Bad Request: the body cannot be read")
	}
}

// refuseCalls counts the calls of a body, and answers one with too many.
func (g *Guard) refuseCalls(out *stream.Writer, r *http.Request, b message.Body) (refused bool) {
	calls, limit := b.Calls(), g.options.Limits.CallsPerMinute
	if g.options.Calls == nil || calls == 0 || limit == 0 {
		return false
	}
	person := g.options.Resource.String() + "\x00" + out.Identity().Caller.Subject
	wait := g.options.Calls.Take(g.options.Now(), quota.Rate{Of: person, Events: calls, PerMinute: limit})
	if wait <= 0 {
		return false
	}
	g.options.Limited.Observe(quota.Calls, quota.Refused)
	attempt.From(r.Context()).Refuse(oauth.RefuseFor(wait, oauth.TooManyCalls, "G21",
		"the person has made too many calls of tools in this minute"))
	seconds := refuseFor(wait, out)
	message.WriteErrorFor(out, http.StatusTooManyRequests, b.ID(), message.CodeRefused,
		fmt.Sprintf("Too Many Requests: there were too many calls of tools; try again in %d s (rule G21)", seconds))
	return true
}

// refuseFor sets the headers of a 429, and returns the wait in seconds.
func refuseFor(wait time.Duration, w http.ResponseWriter) (seconds int) {
	seconds = int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	w.Header().Set("Cache-Control", "no-store")
	return seconds
}

// refuseCaller answers a caller whose consent does not suffice.
func (g *Guard) refuseCaller(w http.ResponseWriter, r *http.Request, refused refusal) {
	caller := stream.IdentityOf(r.Context()).Caller
	g.options.Logger.InfoContext(r.Context(), "refused a request", "grant", caller.Grant,
		"client", g.options.ClientLabel(caller.Client), "reason", refused.description, "rule", refused.rule,
		"needed", refused.scope.String())
	traceRefusal(r.Context(), refused)
	g.refuse(w, refused)
}

// refuseChanged answers a body that names a tool which is not as it was in the first list of the
// caller. The challenge names the scopes of the call, so that the next consent suffices for it.
func (g *Guard) refuseChanged(w http.ResponseWriter, r *http.Request, b message.Body) (refused bool) {
	caller := stream.IdentityOf(r.Context()).Caller
	if g.options.RecordTools == nil || len(b.Names.Tools) == 0 {
		return false
	}
	permits := caller.Tools.Permits()
	if !slices.ContainsFunc(b.Names.Tools, func(tool string) bool { return !permits(tool) }) {
		return false
	}
	needed := g.neededScopes(caller, b.Names.Tools, b.Arguments())
	g.refuseCaller(w, r, changedTool.with(g.withDefaults(needed)))
	return true
}
