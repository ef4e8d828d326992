package inprocess

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/replica"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

const requestIDHeader = "X-Request-Id"

// bindSession returns the session id for clients. It contains the name of the replica, and every
// replica can check that it belongs to the owner.
func (s *Server) bindSession(id, owner string) (string, error) {
	return s.options.Keys.BindSession(s.replica+"."+id, owner)
}

// openSession returns the replica that has the session, and the id there. It fails with
// oauth.ErrNotFound for a session of another owner, as after a login with another host token: only
// 404 makes a client start another session.
func (s *Server) openSession(bound, owner string) (holder, id string, err error) {
	opened, ok, err := s.options.Keys.OpenSession(bound, owner)
	if err != nil {
		return "", "", fmt.Errorf("opening a session id: %w", err)
	}
	holder, id, valid := strings.Cut(opened, ".")
	if !ok || !valid {
		return "", "", oauth.ErrNotFound
	}
	return holder, id, nil
}

func (s *Server) owner(caller *oauth.Caller) string { return caller.SessionOwner(s.options.Resource) }

// routeSession answers a request in a session of this replica, and forwards a request in a session
// of another.
func (s *Server) routeSession(w http.ResponseWriter, r *http.Request, bound string, at replica.Endpoint,
	m jsonrpc.Message) {
	caller := &response.IdentityOf(r.Context()).Caller
	holder, id, err := s.openSession(bound, s.owner(caller))
	if err == nil && holder != s.replica && s.forwarder == nil {
		err = oauth.ErrNotFound
	}
	if err != nil {
		s.answerSessionError(w, r, err)
		return
	}
	if s.forwarder != nil {
		r.Header = replica.ForwardedHeaders(r.Header)
	}
	call := replica.Call{
		Endpoint: at,
		Session:  id,
		Caller:   *caller,
		Body:     m.Body,
	}
	if holder == s.replica {
		s.serveLocal(w, r, call)
		return
	}
	if s.Audit().IsOn() { // the owner of the session records the call, under the id of this request
		identity := response.IdentityOf(r.Context())
		identity.Forwarded = true
		r.Header.Set(requestIDHeader, identity.RequestID)
	}
	if err := s.forwarder.Forward(w, r, holder, call); err != nil {
		s.answerSessionError(w, r, err)
	}
}

// serveForwarded answers a call that another replica has forwarded, in a session of this one.
func (s *Server) serveForwarded(w http.ResponseWriter, r *http.Request, call replica.Call) {
	identity := &response.Identity{Sender: response.Sender{Caller: call.Caller,
		RequestID: r.Header.Get(requestIDHeader)}, Resource: s.options.Resource}
	r = r.WithContext(response.WithIdentity(r.Context(), identity))
	m, _ := jsonrpc.Peek(call.Body) // the replica that has forwarded the call has refused a wrong one
	_, err := s.CheckTools(s, r, m) // that replica may have other tools
	kind, _ := oauth.KindOf(err)
	switch {
	case kind == oauth.InsufficientScope:
		s.RefuseChanged(w, r, m)
	case err != nil && !errors.Is(err, oauth.ErrUnlistedTool): // the SDK refuses an unknown one
		s.refuseUnlisted(w, r, err)
	default:
		s.serveLocal(w, r, call)
	}
}

// serveLocal answers a call in a session of this replica.
func (s *Server) serveLocal(w http.ResponseWriter, r *http.Request, call replica.Call) {
	if s.responses.WasEvicted(call.Session) {
		response.RefuseSession(w, r, "G20", "the session has ended for a newer one, because there were too many")
		return
	}
	if call.Endpoint == replica.SSEMessage {
		s.postToStream(w, r, call.Session, call.Body)
		return
	}
	if !s.responses.UseSession(call.Session, call.Caller.Grant) {
		s.answerSessionError(w, r, oauth.ErrNotFound)
		return
	}
	defer s.responses.Attend(call.Session)()
	r.Header.Set(jsonrpc.SessionHeader, call.Session)
	if seen := s.events.Seen(call.Session); r.Method == http.MethodGet &&
		r.Header.Get(jsonrpc.LastEventHeader) == "" && seen >= 0 {
		r.Header.Set(jsonrpc.LastEventHeader, "_"+strconv.Itoa(seen))
	}
	memory := s.options.Bodies.Reserve(call.Caller.Subject)
	queue, r := response.NewQueue(w, r, memory, func(events []byte) { s.events.Wrote(call.Session, events) })
	defer queue.Close()
	session, known := s.responses.Session(call.Session).(sdkSession)
	if !known { // it has just ended
		session.calls = new(jsonrpc.Sequence)
	}
	s.serveSession(queue, r, call.Body, session.calls)
}

// serveSession calls the SDK's handler of sessions with ids of our own in the messages,
// because the SDK refuses a call with the id of another one that is under way. A
// resumed stream passes here too.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, body []byte, calls *jsonrpc.Sequence) {
	if r.Method == http.MethodPost {
		parts := net.Buffers(calls.Renumber(body))
		r.ContentLength = 0
		for _, part := range parts {
			r.ContentLength += int64(len(part))
		}
		r.Body = io.NopCloser(&parts)
	}
	s.sessions.ServeHTTP(&clientIDs{w}, r)
}

// clientIDs restores the ids of the client in what the SDK writes: one message
// or event with each Write.
type clientIDs struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (c *clientIDs) Write(p []byte) (int, error) {
	if _, err := c.ResponseWriter.Write(jsonrpc.Restore(p)); err != nil {
		return 0, err //nolint:wrapcheck // it is an error of a response, as the SDK expects
	}
	return len(p), nil
}

// Unwrap is called by http.ResponseController.
func (c *clientIDs) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// answerSessionError answers a request whose session does not exist or cannot be reached.
func (s *Server) answerSessionError(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, oauth.ErrNotFound) {
		response.NoSession(w)
		return
	}
	s.options.Logger.ErrorContext(r.Context(), "cannot reach a session", "error", err)
	response.Unavailable(w, "The session cannot be reached now")
}

// sessionIDWriter replaces the SDK's session id in the header of the response to initialize.
type sessionIDWriter struct {
	http.ResponseWriter
	bind  func(id string) (string, error)
	bound bool
	err   error
}

// bindID answers 503 if there is an error, and then returns it every time.
func (s *sessionIDWriter) bindID() error {
	if s.bound {
		return s.err
	}
	s.bound = true
	id := s.Header().Get(jsonrpc.SessionHeader)
	if id == "" {
		return nil
	}
	bound, err := s.bind(id)
	if err != nil {
		s.Header().Del(jsonrpc.SessionHeader)
		s.err = fmt.Errorf("binding a session id: %w", err)
		response.Unavailable(s.ResponseWriter, "No session can be opened now")
		return s.err
	}
	s.Header().Set(jsonrpc.SessionHeader, bound)
	return nil
}

// WriteHeader implements http.ResponseWriter.
func (s *sessionIDWriter) WriteHeader(status int) {
	if s.bindID() == nil {
		s.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (s *sessionIDWriter) Write(p []byte) (int, error) {
	if err := s.bindID(); err != nil {
		return 0, err
	}
	return s.ResponseWriter.Write(p)
}

// FlushError is called by http.ResponseController.
func (s *sessionIDWriter) FlushError() error {
	if err := s.bindID(); err != nil {
		return err
	}
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// sdkSession is a session of the SDK, which needs no cause for its end.
type sdkSession struct {
	*sdk.ServerSession
	calls *jsonrpc.Sequence
}

// End implements response.Session.
func (s sdkSession) End(error) { _ = s.Close() }

// admitSession counts a session over HTTP until it ends, because the SDK has no limit.
func (s *Server) admitSession(req sdk.Request, caller *oauth.Caller) error {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if extra := req.GetExtra(); !ok || extra == nil || extra.Header == nil {
		return nil
	}
	if !s.responses.AddSession(sdkSession{session, new(jsonrpc.Sequence)}, caller) {
		return &rpc.Error{Code: jsonrpc.CodeRefused, Message: "the session cannot be opened"}
	}
	return nil
}

// sessionIDOf returns the SDK's id of the session of a request, "" if it has none.
func sessionIDOf(req sdk.Request) string {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || session == nil {
		return ""
	}
	return session.ID()
}
