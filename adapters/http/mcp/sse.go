package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"mime"
	"net/http"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/replica"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	messagePath  = "/message"
	shuttingDown = "The service is shutting down"
)

// legacySession is one stream of HTTP+SSE (2024-11-05): the SDK's transport and connection at once. Answers leave on the GET,
// messages arrive by POST. The SDK's own binding loses the caller of a message and binds a session to nobody.
type legacySession struct {
	id  string
	out *response.Writer // whose end is the session's
	in  chan rpc.Message
}

// Connect is called once, by sdk.Server.Connect.
func (s *legacySession) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SupportsProtocolVersion keeps revisions without sessions off this binding.
func (s *legacySession) SupportsProtocolVersion(version string) bool { return version < firstStateless }

// SessionID is what the client calls the session.
func (s *legacySession) SessionID() string { return s.id }

// Read returns the next message that was posted, io.EOF after the end.
func (s *legacySession) Read(ctx context.Context) (rpc.Message, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.out.Context().Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message as an event.
func (s *legacySession) Write(_ context.Context, m rpc.Message) error {
	body, err := rpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return s.send("message", body)
}

func (s *legacySession) send(event string, payload []byte) error {
	if _, err := fmt.Fprintf(s.out, "event: %s\ndata: %s\n\n", event, payload); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	if err := s.out.FlushError(); err != nil {
		return fmt.Errorf("flushing an event: %w", err)
	}
	return nil
}

// Close ends the stream.
func (s *legacySession) Close() error {
	s.out.End(nil)
	return nil
}

// openLegacy is GET without a session: the first event says where to post, the rest are answers. The SDK has to be ready before a client knows
// that: it would offer whoever is faster a revision that this binding cannot serve. It waits with little on the stack.
func (s *Server) openLegacy(out *response.Writer, r *http.Request) {
	session, name := s.newLegacy(out, r)
	if session == nil {
		return
	}
	s.legacy.Store(session.id, session)
	defer s.legacy.Delete(session.id)
	connected := s.connect(session)
	if connected == nil {
		return
	}
	if session.announce(s.path+messagePath+"?sessionid="+name) != nil {
		_ = session.Close()
	}
	<-out.Context().Done()
	go s.forget(connected, session.id)
}

// newLegacy returns a session and what its client is to call it, nil when there can be none.
func (s *Server) newLegacy(out *response.Writer, r *http.Request) (session *legacySession, name string) {
	if s.open.IsDraining() {
		response.Unavailable(out, shuttingDown)
		return nil, ""
	}
	session = &legacySession{id: rand.Text(), out: out, in: make(chan rpc.Message)}
	name, err := s.sessionName(session.id, s.owner(&out.Identity().Caller))
	if err != nil {
		s.noSession(out, r, err)
		return nil, ""
	}
	return session, name
}

// announce says where to post.
func (s *legacySession) announce(address string) error {
	s.out.Header().Set("Content-Type", response.EventStream)
	s.out.Header().Set("Cache-Control", "no-cache, no-transform")
	return s.send("endpoint", []byte(address))
}

// connect hands the session to the SDK, and answers when that is in vain.
func (s *Server) connect(session *legacySession) *sdk.ServerSession {
	connected, err := s.mcp.Connect(session.out.Context(), session, nil)
	if err != nil {
		s.options.Logger.ErrorContext(session.out.Context(), "cannot connect an SSE session", "error", err)
		response.Unavailable(session.out, "The session cannot be opened just now")
		return nil
	}
	if !s.open.AddSession(connected, &session.out.Identity().Caller) {
		response.Unavailable(session.out, shuttingDown)
		_ = session.Close()
		go s.forget(connected, session.id)
		return nil
	}
	return connected
}

// forget waits for calls, which the end of the session cancels: one that initializes would admit the session again.
func (s *Server) forget(connected *sdk.ServerSession, id string) {
	_ = connected.Close()
	s.open.RemoveSession(id)
}

// deliver is POST to the message endpoint.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	s.hold(w, r, r.URL.Query().Get("sessionid"), replica.SSEMessage, m)
}

// handOver gives a message to the session of a stream. Every message carries its own caller: its token may be newer than the stream's.
func (s *Server) handOver(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	found, _ := s.legacy.Load(id)
	session, ok := found.(*legacySession)
	if !ok || s.owner(&session.out.Identity().Caller) != s.owner(&response.IdentityOf(r.Context()).Caller) {
		s.noSession(w, r, oauth.ErrNotFound)
		return
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		jsonrpc.WriteError(w, http.StatusUnsupportedMediaType, "Unsupported Media Type: send application/json")
		return
	}
	decoded, err := rpc.DecodeMessage(body)
	if err != nil {
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: the body is not a JSON-RPC message")
		return
	}
	if request, ok := decoded.(*rpc.Request); ok {
		request.Extra = &sdk.RequestExtra{TokenInfo: response.IdentityOf(r.Context()).TokenInfo(), Header: r.Header}
	}
	select {
	case session.in <- decoded:
		w.WriteHeader(http.StatusAccepted)
	case <-session.out.Context().Done():
		jsonrpc.WriteError(w, http.StatusNotFound, "Not Found: the session has ended")
	case <-r.Context().Done():
	}
}
