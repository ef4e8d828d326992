package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/domain/oauth"
)

const messagePath = "/message"

// legacySession is one stream of HTTP+SSE (2024-11-05): the SDK's transport and connection at once. Answers leave on the GET,
// messages arrive by POST. The SDK's own binding loses the caller of a message and binds a session to nobody.
type legacySession struct {
	id, grant string
	out       http.ResponseWriter
	in        chan jsonrpc.Message
	done      chan struct{}
	end       sync.Once
}

// Connect is called once, by sdk.Server.Connect.
func (s *legacySession) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SupportsProtocolVersion keeps revisions without sessions off this binding.
func (s *legacySession) SupportsProtocolVersion(version string) bool { return version < firstStateless }

// SessionID is what the client calls the session.
func (s *legacySession) SessionID() string { return s.id }

// Read returns the next message that was posted, io.EOF after the end.
func (s *legacySession) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message as an event.
func (s *legacySession) Write(_ context.Context, m jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return s.send("message", body)
}

func (s *legacySession) send(event string, payload []byte) error {
	if _, err := fmt.Fprintf(s.out, "event: %s\ndata: %s\n\n", event, payload); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	if err := http.NewResponseController(s.out).Flush(); err != nil {
		return fmt.Errorf("flushing an event: %w", err)
	}
	return nil
}

// Close ends the stream.
func (s *legacySession) Close() error {
	s.end.Do(func() { close(s.done) })
	return nil
}

// openLegacy is GET without a session: the first event says where to post, the rest are answers.
func (s *Server) openLegacy(w http.ResponseWriter, r *http.Request) {
	if s.streams.full(identityOf(r.Context()).caller.Grant) {
		unavailable(w, "There are too many open sessions")
		return
	}
	session := &legacySession{
		id: rand.Text(), grant: identityOf(r.Context()).caller.Grant, out: w,
		in: make(chan jsonrpc.Message), done: make(chan struct{}),
	}
	name, err := s.sessionName(session.id, session.grant)
	if err != nil {
		s.noSession(w, r, err)
		return
	}
	s.legacy.Store(session.id, session)
	defer s.legacy.Delete(session.id)
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	if session.send("endpoint", []byte(s.path+messagePath+"?sessionid="+name)) != nil {
		return
	}
	s.serveLegacy(r.Context(), session)
}

func (s *Server) serveLegacy(ctx context.Context, session *legacySession) {
	connected, err := s.mcp.Connect(ctx, session, nil)
	if err != nil {
		s.options.Logger.ErrorContext(ctx, "cannot connect an SSE session", "error", err)
		return
	}
	defer func() { go connected.Close() }() // waits for calls, which the end of the session cancels
	defer session.Close()
	if _, ok := s.streams.add(connected, session.grant); !ok {
		return
	}
	defer s.streams.remove(connected)
	select {
	case <-ctx.Done():
	case <-session.done:
	}
}

// deliver is POST to the message endpoint.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, m message) {
	s.hold(w, r, r.URL.Query().Get("sessionid"), endpointMessage, m)
}

// handOver gives a message to the session of a stream. Every message carries its own caller: its token may be newer than the stream's.
func (s *Server) handOver(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	found, _ := s.legacy.Load(id)
	session, ok := found.(*legacySession)
	if !ok || session.grant != identityOf(r.Context()).caller.Grant {
		s.noSession(w, r, oauth.ErrNotFound)
		return
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		rpcError(w, http.StatusUnsupportedMediaType, "Unsupported Media Type: send application/json")
		return
	}
	decoded, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		rpcError(w, http.StatusBadRequest, "Bad Request: the body is not a JSON-RPC message")
		return
	}
	if request, ok := decoded.(*jsonrpc.Request); ok {
		request.Extra = &sdk.RequestExtra{TokenInfo: auth.TokenInfoFromContext(r.Context()), Header: r.Header}
	}
	select {
	case session.in <- decoded:
		w.WriteHeader(http.StatusAccepted)
	case <-session.done:
		rpcError(w, http.StatusNotFound, "Not Found: the session has ended")
	case <-r.Context().Done():
	}
}
