package sdkserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
)

// legacySession is a session of HTTP+SSE (2024-11-05). It is an sdk.Transport and its
// sdk.Connection: it sends on the stream of the GET and receives messages by POST. The SDK's own
// SSE handler passes no caller with a message and does not bind a session to its owner.
type legacySession struct {
	id  string
	out *stream.Writer // the stream; the session ends with it
	in  chan rpc.Message

	calls *message.Sequence // numbers the ids of calls; Write restores them
}

// Connect is called once, by sdk.Server.Connect.
func (s *legacySession) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SupportsProtocolVersion reports whether a revision has sessions.
func (s *legacySession) SupportsProtocolVersion(version string) bool {
	return version < message.FirstStateless
}

// SessionID returns the id of the session in this replica.
func (s *legacySession) SessionID() string { return s.id }

// Read returns the next message from a POST, io.EOF after the end of the stream.
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

// Write sends a message as an event, with the request id that the client chose.
func (s *legacySession) Write(_ context.Context, m rpc.Message) error {
	body, err := rpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return s.send("message", message.Restore(body))
}

func (s *legacySession) send(event string, payload []byte) error {
	if _, err := s.out.Write(message.Event(event, "", payload)); err != nil {
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

// openLegacy answers a GET without a session. The first event is the URL for messages. The SDK is
// connected before that event, because otherwise the SDK offers a fast client a revision without
// sessions. The wait is in this function because its stack frame is small.
func (s *Server) openLegacy(out *stream.Writer, r *http.Request) {
	session, bound := s.newLegacy(out, r)
	if session == nil {
		return
	}
	s.legacy.Store(session.id, session)
	defer s.legacy.Delete(session.id)
	connected := s.connect(session)
	if connected == nil {
		return
	}
	defer s.responses.Attend(session.id)()
	out.Header().Set("Content-Type", message.EventStream)
	out.Header().Set("Cache-Control", "no-cache, no-transform")
	if session.send("endpoint", []byte(guard.MessagePath(s.options.Resource)+"?sessionid="+bound)) != nil {
		_ = session.Close()
	}
	<-out.Context().Done()
	go s.forget(connected, session.id)
}

// newLegacy returns a session and bound, its id for the client. It returns nil when it has answered
// with an error.
func (s *Server) newLegacy(out *stream.Writer, r *http.Request) (session *legacySession, bound string) {
	if s.responses.IsDraining() {
		stream.Unavailable(out, stream.ShuttingDown)
		return nil, ""
	}
	session = &legacySession{
		id:    rand.Text(),
		out:   out,
		in:    make(chan rpc.Message),
		calls: new(message.Sequence),
	}
	bound, err := s.options.Sessions.BindSession(session.id, s.owner(&out.Identity().Caller))
	if err != nil {
		s.options.Logger.ErrorContext(r.Context(), "cannot bind a session id", "error", err)
		stream.Unavailable(out, "No session can be opened now")
		return nil, ""
	}
	return session, bound
}

// connect connects the session to the SDK. It returns nil when it has answered with an error.
func (s *Server) connect(session *legacySession) *sdk.ServerSession {
	connected, err := s.mcp.Connect(session.out.Context(), session, nil)
	if err != nil {
		s.options.Logger.ErrorContext(session.out.Context(), "cannot connect an SSE session", "error", err)
		stream.Unavailable(session.out, "The session cannot be opened now")
		return nil
	}
	if !s.responses.AddSession(sdkSession{connected, session.calls}, &session.out.Identity().Caller) {
		stream.Unavailable(session.out, stream.ShuttingDown)
		_ = session.Close()
		go s.forget(connected, session.id)
		return nil
	}
	return connected
}

// forget removes the session. It waits for its calls, because a late initialize would add it again.
func (s *Server) forget(connected *sdk.ServerSession, id string) {
	_ = connected.Close()
	s.responses.RemoveSession(id)
}

// Deliver implements guard.LegacyBackend: it passes a message to the session of a stream. Each
// message has its own caller, whose token may be newer than that of the stream.
func (s *Server) Deliver(out *stream.Writer, r *http.Request, b message.Body) {
	w := answering(out, b)
	id, ok := s.openSession(w, r, guard.InQuery(r))
	if !ok {
		return
	}
	found, _ := s.legacy.Load(id)
	session, ok := found.(*legacySession)
	if !ok || s.owner(&session.out.Identity().Caller) != s.owner(&stream.IdentityOf(r.Context()).Caller) {
		stream.NoSession(w)
		return
	}
	b.Messages = session.calls.Renumber(b.Messages)
	decoded, err := rpc.DecodeMessage(b.Encode())
	if err != nil {
		message.WriteError(w, http.StatusBadRequest, "Bad Request: the body is not a JSON-RPC message")
		return
	}
	if request, ok := decoded.(*rpc.Request); ok {
		request.Extra = &sdk.RequestExtra{TokenInfo: stream.IdentityOf(r.Context()).TokenInfo(), Header: r.Header}
	}
	select {
	case session.in <- decoded:
		w.WriteHeader(http.StatusAccepted)
	case <-session.out.Context().Done():
		message.WriteError(w, http.StatusNotFound, "Not Found: the session has ended")
	case <-r.Context().Done():
	}
}
