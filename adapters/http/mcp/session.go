package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/replica"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// sessionName is what clients call a session: it says which replica holds it, and opens only for its owner, on
// every replica and before anybody else is asked (R2).
func (s *Server) sessionName(id, owner string) (string, error) {
	return s.options.Keys.BindSession(s.replica+"."+id, owner)
}

// openSession returns which replica holds the session of that name, and how it calls it. It fails with oauth.ErrNotFound for a name
// of another owner, as after a login with another host token: only 404 tells a client to start another session.
func (s *Server) openSession(name, owner string) (holder, id string, err error) {
	opened, ok, err := s.options.Keys.OpenSession(name, owner)
	if err != nil {
		return "", "", fmt.Errorf("reading the name of a session: %w", err)
	}
	holder, id, named := strings.Cut(opened, ".")
	if !ok || !named {
		return "", "", oauth.ErrNotFound
	}
	return holder, id, nil
}

func (s *Server) owner(caller *oauth.Caller) string { return caller.SessionOwner(s.options.Resource) }

// hold lets the holder of a session answer, which may be another replica.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, name string, at replica.Endpoint, m jsonrpc.Message) {
	who := &response.IdentityOf(r.Context()).Caller
	holder, id, err := s.openSession(name, s.owner(who))
	if err == nil && holder != s.replica && s.forwarder == nil {
		err = oauth.ErrNotFound
	}
	if err != nil {
		s.noSession(w, r, err)
		return
	}
	if s.forwarder != nil {
		r.Header = replica.ForwardedHeaders(r.Header)
	}
	call := replica.Call{Endpoint: at, Session: id, Caller: *who, Body: m.Body}
	if holder == s.replica {
		s.serveHeld(w, r, call)
	} else if err := s.forwarder.Forward(w, r, holder, call); err != nil {
		s.noSession(w, r, err)
	}
}

// serveForwarded answers a call that another replica has forwarded, in a session of this one.
func (s *Server) serveForwarded(w http.ResponseWriter, r *http.Request, call replica.Call) {
	who := &response.Identity{Sender: response.Sender{Caller: call.Caller}, Resource: s.options.Resource}
	s.serveHeld(w, r.WithContext(response.WithIdentity(r.Context(), who)), call)
}

// serveHeld answers a request in a session of this replica.
func (s *Server) serveHeld(w http.ResponseWriter, r *http.Request, call replica.Call) {
	if s.refuseEvicted(w, r, call.Session) {
		return
	}
	if call.Endpoint == replica.SSEMessage {
		s.handOver(w, r, call.Session, call.Body)
		return
	}
	if !s.open.UseSession(call.Session, call.Caller.Grant) {
		s.noSession(w, r, oauth.ErrNotFound)
		return
	}
	r.Header.Set(sessionHeader, call.Session)
	s.sessions.ServeHTTP(w, r)
}

const noSuchSession = "Not Found: there is no such session"

// noSession answers why a session cannot be used.
func (s *Server) noSession(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, oauth.ErrNotFound) {
		jsonrpc.WriteError(w, http.StatusNotFound, noSuchSession)
		return
	}
	s.options.Logger.ErrorContext(r.Context(), "cannot reach a session", "error", err)
	response.Unavailable(w, "The session cannot be reached just now")
}

// introduction is the answer to initialize, in which the SDK says how it calls the new session.
type introduction struct {
	http.ResponseWriter
	name func(id string) (string, error)
	said bool
	err  error
}

// say puts the name for clients in the place of the SDK's. A session whose name cannot be made is of no use to anybody.
func (i *introduction) say() error {
	if i.said {
		return i.err
	}
	i.said = true
	id := i.Header().Get(sessionHeader)
	if id == "" {
		return nil
	}
	name, err := i.name(id)
	if err != nil {
		i.Header().Del(sessionHeader)
		i.err = fmt.Errorf("naming a session: %w", err)
		response.Unavailable(i.ResponseWriter, "There can be no session just now")
		return i.err
	}
	i.Header().Set(sessionHeader, name)
	return nil
}

// WriteHeader names the session first.
func (i *introduction) WriteHeader(status int) {
	if i.say() == nil {
		i.ResponseWriter.WriteHeader(status)
	}
}

// Write names the session first.
func (i *introduction) Write(p []byte) (int, error) {
	if err := i.say(); err != nil {
		return 0, err
	}
	return i.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (i *introduction) FlushError() error {
	if err := i.say(); err != nil {
		return err
	}
	return http.NewResponseController(i.ResponseWriter).Flush()
}

// admitSession gives a session over HTTP a place until it ends, because the SDK has no limit.
func (s *Server) admitSession(req sdk.Request, caller *oauth.Caller) error {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if extra := req.GetExtra(); !ok || extra == nil || extra.Header == nil {
		return nil
	}
	if !s.open.AddSession(session, caller) {
		return &rpc.Error{Code: jsonrpc.CodeRefused, Message: "the session cannot be opened"}
	}
	return nil
}

// sessionIDOf returns the id of the session of a request, "" when it has none.
func sessionIDOf(req sdk.Request) string {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || session == nil {
		return ""
	}
	return session.ID()
}

const evictedSession = "the session has ended for a newer one, because there were too many"

// refuseEvicted refuses a request in a session that has ended for another one, and reports whether it did (G20).
func (s *Server) refuseEvicted(w http.ResponseWriter, r *http.Request, session string) (refused bool) {
	if !s.open.WasEvicted(session) {
		return false
	}
	refuseSession(w, r, "G20", evictedSession)
	return true
}
