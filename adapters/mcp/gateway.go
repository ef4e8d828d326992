package mcp

import (
	"errors"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Upstream is an MCP server elsewhere. Both methods write a response, or return an error:
// oauth.ErrUnknownBearer if the upstream answered 401 to the host token, oauth.ErrNotFound for a
// session of another caller, oauth.ErrUnknownSession for a session that the upstream does not know,
// or the reason why the response is missing or incomplete.
type Upstream interface {
	// Forward answers a request to the endpoint.
	Forward(w http.ResponseWriter, r *http.Request, body []byte, sender oauth.Caller, host oauth.HostToken) error
	// Deliver answers a message of HTTP+SSE. The request has the URL that Forward announced on its
	// stream.
	Deliver(w http.ResponseWriter, r *http.Request, body []byte, sender oauth.Caller, host oauth.HostToken) error
}

// SessionKeeper is an Upstream with sessions in this process. The registry limits them, and ends
// them with their grants.
type SessionKeeper interface {
	// KeepSessions is called once, before the first request.
	KeepSessions(registry *response.Registry)
}

// codeUnavailable is in the range of JSON-RPC for errors of servers.
const codeUnavailable = -32000

// NewGateway protects an MCP server elsewhere. It refuses bodies that two parsers could read
// differently, because only the guard checks the caller.
func NewGateway(to Upstream, o Options) *Server {
	s := newServer(o, to)
	if keeper, ok := to.(SessionKeeper); ok {
		keeper.KeepSessions(s.responses)
	}
	s.endpoint, s.message = s.relay(to.Forward), s.relay(to.Deliver)
	return s
}

// MessagePath returns the path for the messages of HTTP+SSE to a resource.
func MessagePath(resource oauth.Resource) string {
	_, path := splitOrigin(resource.String())
	return path + messagePath
}

// sender is a method of an Upstream.
type sender func(w http.ResponseWriter, r *http.Request, body []byte, sender oauth.Caller, host oauth.HostToken) error

func (s *Server) relay(send sender) route {
	return func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		// Many servers answer it with an endless stream, which blocks the connection to them.
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Type", response.EventStream)
			return
		}
		if m.Refused == nil && m.Listen || r.Method == http.MethodGet {
			w.(*response.Writer).LimitStream()
		}
		if err := s.forward(send, w, r, m); err != nil && r.Context().Err() == nil {
			s.answerError(w, r, m, err)
		}
	}
}

// forward sends a message to the upstream and the response to w: filtered with a Policy, and not at
// all for a message that the client has not sent.
func (s *Server) forward(send sender, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) error {
	identity := response.IdentityOf(r.Context())
	deliver := func(to http.ResponseWriter) error { return send(to, r, m.Body, identity.Caller, identity.Host) }
	switch {
	case m.Refused != nil:
		return deliver(discard(w))
	case s.options.HasPolicy():
		return s.filtered(w, r, m, deliver)
	}
	return deliver(w)
}

// answerError answers a request for which the upstream has no response.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, m jsonrpc.Message, err error) {
	ctx := r.Context()
	var failure interface {
		error
		HTTPStatus() int
		BrokenRule() string
		RetryAfter() string
		Unwrap() error
	}
	switch {
	case errors.Is(err, oauth.ErrUnknownBearer):
		s.answerUnauthorized(w, r, m, err)
	case errors.Is(err, oauth.ErrNotFound):
		refuseSession(w, r, "U12", "there is no such session of this connection")
	case errors.Is(err, oauth.ErrUnknownSession):
		refuseSession(w, r, "U16", unknownToUpstream)
	case errors.As(err, &failure):
		s.options.Logger.WarnContext(ctx, "the upstream did not answer", "status", failure.HTTPStatus(), "rule",
			failure.BrokenRule(),
			"reason", failure, "cause", failure.Unwrap())
		trace.From(ctx).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, failure.BrokenRule(), failure.Error()))
		if out := w.(*response.Writer); !out.IsAwaited() {
			out.Abort()
		}
		if after := failure.RetryAfter(); after != "" {
			w.Header().Set("Retry-After", after)
		}
		rpcFailure(w, failure.HTTPStatus(), m.ID, failure.Error())
	default:
		s.options.Logger.ErrorContext(ctx, "cannot relay a request", "error", err)
		response.Unavailable(w, "The request cannot be passed on just now")
	}
}

// answerUnauthorized answers when the upstream has answered 401 to a person's host token. Many
// servers do that for an unknown session or for one tool, so the grant ends only if the site's
// verifier does not know the host token either.
func (s *Server) answerUnauthorized(w http.ResponseWriter, r *http.Request, m jsonrpc.Message, refused error) {
	ctx := r.Context()
	if s.namesSession(r) && r.Method != http.MethodPost {
		refuseSession(w, r, "U16", unknownToUpstream)
		return
	}
	err := s.options.HostTokens.VerifyAfterRefusal(ctx, response.IdentityOf(ctx).Token, s.options.Resource)
	switch {
	case err != nil && isInvalidToken(err):
		trace.From(ctx).Refuse(oauth.Refuse(oauth.InvalidToken, "U8",
			"the MCP server behind this gateway answered 401, and the site does not know the person's token any more",
			howSent(refused)))
		w.(*response.Writer).End(response.ErrEnded) // answerEnded then writes the challenge
	case err != nil:
		s.options.Logger.WarnContext(ctx, "cannot verify a host token after the upstream answered 401", "error", err)
		trace.From(ctx).Refuse(err)
		response.Unavailable(w,
			"The MCP server behind this gateway answered 401, and the person's token cannot be verified just now")
	case s.namesSession(r):
		refuseSession(w, r, "U16", unknownToUpstream)
	default:
		const text = "The MCP server behind this gateway answered 401, although the person's token is valid"
		s.options.Logger.WarnContext(ctx, "the upstream answered 401 to a valid host token", "reason", howSent(refused))
		trace.From(ctx).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "U17", text, howSent(refused)))
		rpcFailure(w, http.StatusBadGateway, m.ID, text)
	}
}

// howSent returns how the upstream got the host token that it refused, nil if it got none.
func howSent(refused error) error {
	if reason := oauth.UnknownBearer(""); errors.As(refused, &reason) {
		return reason
	}
	return nil
}

// namesSession reports whether a request belongs to a session of the upstream, by its header or its
// URL.
func (s *Server) namesSession(r *http.Request) bool {
	return r.Header.Get(sessionHeader) != "" || r.URL.Path == s.path+messagePath
}

const unknownToUpstream = "the MCP server behind this gateway does not know the session any more"

// refuseSession answers 404, so that the client initializes another session.
func refuseSession(w http.ResponseWriter, r *http.Request, rule, reason string) {
	trace.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, rule, reason))
	jsonrpc.WriteError(w, http.StatusNotFound, noSuchSession)
}

// rpcFailure answers with a JSON-RPC error for the request with that id.
func rpcFailure(w http.ResponseWriter, status int, id []byte, text string) {
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", response.RetryAfter)
	}
	w.Header().Set("Cache-Control", "no-store")
	jsonrpc.WriteErrorFor(w, status, id, codeUnavailable, text)
}
