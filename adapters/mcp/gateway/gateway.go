// Package gateway protects an MCP server elsewhere with a guard. A Gateway forwards each admitted
// request to an Upstream, which answers: package upstream over HTTP, and package program a program
// on its standard streams. A *Failure is the error of an Upstream without a response.
//
// With a policy, it refuses messages that name what the caller may not use, and package filter
// removes it from the responses.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Upstream is an MCP server elsewhere. Forward writes a response, or returns an error:
// oauth.ErrUnknownBearer if the upstream answered 401 to the host token, oauth.ErrNotFound for a
// session of another caller, oauth.ErrUnknownSession for a session that the upstream does not know,
// or the reason why the response is missing or incomplete.
type Upstream interface {
	// Forward answers a request to the endpoint.
	Forward(w http.ResponseWriter, r *http.Request, b message.Body, sender oauth.Caller, host oauth.HostToken) error
}

// SessionKeeper is an Upstream with sessions in this process. The registry limits them, and ends
// them with their grants.
type SessionKeeper interface {
	// SessionLimits returns MaxSessions, MaxSessionsPerPerson, and the time after which a session
	// ends that no request uses.
	SessionLimits() (limits oauth.Limits, idle time.Duration)
	// KeepSessions is called once, before the first request.
	KeepSessions(registry *stream.Registry)
}

// HostTokens checks the access tokens of a gateway that sends host tokens to its upstream.
type HostTokens interface {
	// AuthenticateWithHostToken is guard.Authorization.Authenticate, and also returns the unsealed
	// host token.
	AuthenticateWithHostToken(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller,
		oauth.HostToken, error)
	// VerifyAfterRefusal verifies the host token of the access token again, after the upstream has
	// answered 401. It returns nil for a valid host token, and oauth.InvalidToken for an invalid
	// one, whose grant it has ended. Any other error is an outage of the verifier.
	VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error
}

// Options configure a Gateway.
type Options struct {
	guard.Options
	HostTokens HostTokens     // nil for an upstream that gets no host tokens
	Sessions   guard.Sessions // binds the ids of sessions to their owners
}

// OpenSession returns the session of a request, "" without one. It fails with oauth.ErrNotFound for
// a session of another caller.
func (o Options) OpenSession(header http.Header, sender oauth.Caller) (string, error) {
	bound := header.Values(message.SessionHeader)
	if len(bound) == 0 {
		return "", nil
	}
	session, ok, err := o.Sessions.OpenSession(bound[0], sender.SessionOwner(o.Resource))
	switch {
	case err != nil:
		return "", fmt.Errorf("opening a session id: %w", err)
	case !ok, len(bound) > 1:
		return "", oauth.ErrNotFound
	}
	return session, nil
}

// Gateway forwards the requests that its guard has admitted to an Upstream.
type Gateway struct {
	*guard.Guard
	options  Options
	upstream Upstream

	hasToolScopes bool
	silence       time.Duration // see silence; shorter in tests
	failing       atomic.Bool   // since a failure was logged
}

// New protects an MCP server elsewhere. It refuses bodies that two parsers could read differently,
// because only the guard checks the caller.
func New(to Upstream, o Options) *Gateway {
	if o.HostTokens != nil {
		o.Verify = func(ctx context.Context, identity *stream.Identity) (err error) {
			identity.Caller, identity.Host, err = o.HostTokens.AuthenticateWithHostToken(ctx, identity.Token,
				identity.Resource)
			return err
		}
	}
	hasToolScopes := o.ToolScopes != nil || o.CallScopes != nil
	o.Tools, o.Prompts = limit(o.Tools, access.FoldName), limit(o.Prompts, access.FoldName)
	o.Resources = limit(o.Resources, access.FoldURI)
	o.Options = o.WithDefaults()
	responses := o.Responses()
	responses.Relays, responses.StreamLimits = true, o.Limits
	keeper, keepsSessions := to.(SessionKeeper)
	if keepsSessions {
		responses.Limits, responses.IdleTimeout = keeper.SessionLimits()
	}
	registry := stream.NewRegistry(responses)
	if keepsSessions {
		keeper.KeepSessions(registry)
	}
	return &Gateway{
		Guard:    guard.New(o.Options, registry),
		options:  o,
		upstream: to,

		hasToolScopes: hasToolScopes,
		silence:       silence,
	}
}

// Mount registers the endpoints at the path of the resource.
func (g *Gateway) Mount(e *echo.Echo) { g.Guard.Mount(e, g) }

// Read implements guard.Backend.
func (g *Gateway) Read(out *stream.Writer, r *http.Request, text []byte) message.Body {
	b, err := message.Read(r.Header, text)
	switch {
	case err != nil:
		b.Refused = message.Refuse(err, text)
	case b.IsBatch && (g.options.HasPolicy() || g.hasToolScopes):
		b.Refused = message.RefuseBatch(b)
	default:
		b.Refused = g.refuseNames(out, r, b)
	}
	return b
}

// Serve implements guard.Backend.
func (g *Gateway) Serve(out *stream.Writer, r *http.Request, b message.Body) {
	// Many servers answer it with an endless stream, which blocks the connection to them.
	if r.Method == http.MethodHead {
		out.Header().Set("Content-Type", message.EventStream)
		return
	}
	// Clients of Streamable HTTP open a stream in a session, or name their revision.
	opensLegacy := r.Method == http.MethodGet && !namesSession(r) && r.Header.Get(message.VersionHeader) == ""
	if opensLegacy {
		text := "HTTP+SSE of 2024-11-05 is not supported: use Streamable HTTP at " + g.options.Resource.String()
		attempt.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, "U13", text))
		out.Header().Set("Allow", http.MethodPost)
		message.WriteError(out, http.StatusMethodNotAllowed, "Method Not Allowed: "+text)
		return
	}
	if b.Refused == nil && b.Listens() || r.Method == http.MethodGet {
		out.LimitStream()
	}
	answer := g.newLateAnswer(out, r, b)
	defer answer.finish()
	identity := stream.IdentityOf(r.Context())
	deliver := func(to http.ResponseWriter) error {
		return g.upstream.Forward(to, r, b, identity.Caller, identity.Host)
	}
	var err error
	switch {
	case b.Refused != nil: // an error in place of the client's answer, which gets no response
		err = deliver(stream.Discard(answer))
	case g.options.HasPolicy():
		err = g.filtered(answer, r, b, deliver)
	default:
		err = deliver(answer)
	}
	switch {
	case err == nil:
		g.failing.Store(false)
	case r.Context().Err() == nil:
		g.answerError(answer, r, b.ID(), err)
	}
}

// answerError answers a request for which the upstream has no response.
func (g *Gateway) answerError(w *lateAnswer, r *http.Request, id message.ID, err error) {
	ctx := r.Context()
	var failure *Failure
	switch {
	case errors.Is(err, oauth.ErrUnknownBearer):
		g.answerUnauthorized(w, r, id, err)
	case errors.Is(err, oauth.ErrNotFound):
		stream.RefuseSession(w, r, "U12", "this connection does not have the session")
	case errors.Is(err, oauth.ErrUnknownSession):
		stream.RefuseSession(w, r, "U16", unknownToUpstream)
	case errors.As(err, &failure):
		g.answerFailure(w, r, id, failure)
	default:
		g.options.Logger.ErrorContext(ctx, "cannot relay a request", "error", err)
		stream.Unavailable(w, "The request cannot be passed on just now")
	}
}

func (g *Gateway) answerFailure(out *lateAnswer, r *http.Request, id message.ID, f *Failure) {
	level := slog.LevelWarn
	if g.failing.Swap(true) { // an outage fails every call
		level = slog.LevelDebug
	}
	g.options.Logger.Log(r.Context(), level, "the upstream did not answer", "status", f.Status, "rule", f.Rule,
		"reason", f, "cause", f.Cause)
	attempt.From(r.Context()).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, f.Rule, f.Error()))
	if !out.IsAwaited() {
		out.Abort()
	}
	if f.RetryAfter != "" {
		out.Header().Set("Retry-After", f.RetryAfter)
	}
	rpcFailure(out, f.Status, id, f.Error())
}

// answerUnauthorized answers when the upstream has answered 401 to a person's host token. Many
// servers do that for an unknown session or for one tool, so the grant ends only if the site's
// verifier does not know the host token either.
func (g *Gateway) answerUnauthorized(w *lateAnswer, r *http.Request, id message.ID, refused error) {
	ctx := r.Context()
	if namesSession(r) && r.Method != http.MethodPost { // the POST that follows verifies the host token
		stream.RefuseSession(w, r, "U16", unknownToUpstream)
		return
	}
	err := g.options.HostTokens.VerifyAfterRefusal(ctx, stream.IdentityOf(ctx).Token, g.options.Resource)
	switch {
	case err != nil && stream.IsInvalidToken(err):
		attempt.From(ctx).Refuse(oauth.Refuse(oauth.InvalidToken, "U8",
			"the MCP server behind this gateway answered 401, and the site does not know the person's token any more",
			howSent(refused)))
		w.End(stream.ErrEnded) // answerEnded then writes the challenge
	case err != nil:
		g.options.Logger.WarnContext(ctx, "cannot verify a host token after the upstream answered 401", "error", err)
		attempt.From(ctx).Refuse(err)
		stream.Unavailable(w,
			"The MCP server behind this gateway answered 401, and the person's token cannot be verified just now")
	case namesSession(r):
		stream.RefuseSession(w, r, "U16", unknownToUpstream)
	default:
		const text = "The MCP server behind this gateway answered 401, although the person's token is valid"
		g.options.Logger.WarnContext(ctx, "the upstream answered 401 to a valid host token", "reason", howSent(refused))
		attempt.From(ctx).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "U17", text, howSent(refused)))
		rpcFailure(w, http.StatusBadGateway, id, text)
	}
}

// howSent returns how the upstream got the host token that it refused, nil if it got none.
func howSent(refused error) error {
	if reason := oauth.UnknownBearer(""); errors.As(refused, &reason) {
		return reason
	}
	return nil
}

// namesSession reports whether a request belongs to a session of the upstream.
func namesSession(r *http.Request) bool { return r.Header.Get(message.SessionHeader) != "" }

const unknownToUpstream = "the MCP server behind this gateway does not know the session any more"

// rpcFailure answers with a JSON-RPC error for the request with that id.
func rpcFailure(w http.ResponseWriter, status int, id message.ID, text string) {
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", stream.RetryAfter)
	}
	w.Header().Set("Cache-Control", "no-store")
	message.WriteErrorFor(w, status, id, message.CodeUnavailable, text)
}

// Failure is the error of an Upstream without a usable response.
type Failure struct {
	Status     int    // of the response to the client: 502, 503 or 504
	Rule       string // its number
	Text       string // for the client
	Cause      error  // for the log
	RetryAfter string // that the upstream has named; "" for none
}

func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }
