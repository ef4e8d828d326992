package sdkserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

func (s *Server) owner(caller *oauth.Caller) string { return caller.SessionOwner(s.options.Resource) }

// openSession returns the id of a session in this process, or answers a request whose session is
// not here or belongs to another owner, as after a login with another host token: only 404 makes a
// client start another session.
func (s *Server) openSession(w http.ResponseWriter, r *http.Request, bound string) (id string, ok bool) {
	id, ok, err := s.options.Sessions.OpenSession(bound, s.owner(&stream.IdentityOf(r.Context()).Caller))
	switch {
	case err != nil:
		s.options.Logger.ErrorContext(r.Context(), "cannot open a session id", "error", err)
		stream.Unavailable(w, "The session cannot be reached now")
	case !ok:
		stream.NoSession(w)
	case s.responses.WasEvicted(id):
		stream.RefuseSession(w, r, "G20", "the session has ended for a newer one, because there were too many")
	default:
		return id, true
	}
	return "", false
}

// inSession answers a request of Streamable HTTP in a session.
func (s *Server) inSession(w http.ResponseWriter, r *http.Request, b message.Body) {
	bound, caller := r.Header.Get(message.SessionHeader), &stream.IdentityOf(r.Context()).Caller
	if bound == "" {
		s.sessions.ServeHTTP(w, r) // its error names the missing header
		return
	}
	id, ok := s.openSession(w, r, bound)
	if !ok {
		return
	}
	if !s.responses.UseSession(id, caller.Grant) {
		stream.NoSession(w)
		return
	}
	defer s.responses.Attend(id)()
	r.Header.Set(message.SessionHeader, id)
	// A client that listens for the first time gets the messages that no client has seen. The ids
	// of the SDK are stream_index, and the stream of a GET is "".
	if seen := s.events.Seen(id); r.Method == http.MethodGet &&
		r.Header.Get(message.LastEventHeader) == "" && seen >= 0 {
		r.Header.Set(message.LastEventHeader, "_"+strconv.Itoa(seen))
	}
	session, known := s.responses.Session(id).(sdkSession)
	if !known { // it has just ended
		session.calls = new(message.Sequence)
	}
	s.serveSession(w, r, b, session.calls)
}

// serveSession calls the SDK's handler of sessions with ids of our own in the messages, because the
// SDK refuses a call with the id of another one that is under way. A resumed stream passes here
// too.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, b message.Body, calls *message.Sequence) {
	if r.Method == http.MethodPost {
		b.Messages = calls.Renumber(b.Messages)
		b.SetOn(r)
	}
	s.sessions.ServeHTTP(&clientIDs{w, s.events, r.Header.Get(message.SessionHeader)}, r)
}

// clientIDs restores the ids of the client in what the SDK writes: one message or event with each
// Write. It records the events that were sent.
type clientIDs struct {
	http.ResponseWriter
	events  *stream.Store
	session string
}

func (c *clientIDs) Write(p []byte) (int, error) {
	if _, err := c.ResponseWriter.Write(message.Restore(p)); err != nil {
		return 0, err //nolint:wrapcheck // it is an error of a response, as the SDK expects
	}
	c.events.Wrote(c.session, p)
	return len(p), nil
}

// Unwrap is called by http.ResponseController.
func (c *clientIDs) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// sessionIDWriter replaces the SDK's session id in the header of the response to initialize.
type sessionIDWriter struct {
	http.ResponseWriter
	bindID func() error
}

// bindingID returns a writer that answers 503 if the id cannot be bound, and then refuses writes.
func (s *Server) bindingID(w http.ResponseWriter, owner string) *sessionIDWriter {
	return &sessionIDWriter{w, sync.OnceValue(func() error {
		id := w.Header().Get(message.SessionHeader)
		if id == "" {
			return nil
		}
		bound, err := s.options.Sessions.BindSession(id, owner)
		if err != nil {
			w.Header().Del(message.SessionHeader)
			stream.Unavailable(w, "No session can be opened now")
			return fmt.Errorf("binding a session id: %w", err)
		}
		w.Header().Set(message.SessionHeader, bound)
		return nil
	})}
}

func (s *sessionIDWriter) WriteHeader(status int) {
	if s.bindID() == nil {
		s.ResponseWriter.WriteHeader(status)
	}
}

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
	calls *message.Sequence
}

func (s sdkSession) End(error) { _ = s.Close() }

// auditCalls is the outermost middleware of the SDK's server.
func (s *Server) auditCalls(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		if !guard.IsRecorded(method) {
			return next(ctx, method, req)
		}
		began, returned := s.options.Now(), false
		defer func() { // also after a panic of a tool
			sender := senderOf(req)
			call := s.NewCall(sender, requestOf(method, req), began)
			call.Outcome = audit.Failed
			if returned {
				setResult(&call, result, err)
			}
			if sender != nil {
				sender.Audited.Store(true)
			}
			s.Record(ctx, call)
		}()
		result, err = next(ctx, method, req)
		returned = true
		return result, err
	}
}

// requestOf describes a request that the SDK has decoded.
func requestOf(method string, req sdk.Request) message.Request {
	request := message.Request{Method: method}
	switch params := req.GetParams().(type) {
	case *sdk.CallToolParamsRaw:
		request.Name, request.Arguments = params.Name, message.Canonical(params.Arguments)
	case *sdk.GetPromptParams:
		request.Name = params.Name
		if params.Arguments != nil {
			raw, _ := json.Marshal(params.Arguments) // strings always encode
			request.Arguments = message.Canonical(raw)
		}
	case *sdk.ReadResourceParams:
		request.Arguments = message.ResourceArguments(params.URI)
	}
	return request
}

func setResult(call *audit.Call, result sdk.Result, err error) {
	var failure *rpc.Error
	var refused *policyError
	switch tool, isTool := result.(*sdk.CallToolResult); {
	case errors.As(err, &refused):
		call.Outcome, call.Rule = audit.Refused, refused.rule
	case err != nil:
		call.Outcome = audit.Failed
	case isTool && tool != nil && tool.IsError:
		call.Outcome = audit.ToolFailed
	default:
		call.Outcome = audit.OK
	}
	if errors.As(err, &failure) {
		call.Code = &failure.Code
	}
}

// policyError is a refusal of the policy.
type policyError struct {
	rule string
	sent *rpc.Error
}

func (e *policyError) Error() string { return e.sent.Error() }

// Unwrap returns the error that the client gets.
func (e *policyError) Unwrap() error { return e.sent }
