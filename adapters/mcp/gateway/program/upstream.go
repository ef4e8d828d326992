// Package program is an MCP server behind the gateway that is a program and speaks MCP over its
// standard streams. Upstream serves Streamable HTTP to clients, and starts one process for each
// session.
//
//	session   the process of a session, and its end
//	post      the messages of a client
//	stream    the events of a response, their resumption, and the streams that a client opens
//	lines     the messages of the program, and the log of what else it prints
//	route     the messages of the program, each to the stream that it belongs to
//
// The SDK's server transport is not used: it refuses methods that the SDK does not know, and only
// handlers of the SDK can send a message in the response to the call that it belongs to.
package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Upstream is one MCP server behind the gateway.
type Upstream struct {
	address     gateway.Address
	path        string // of the command
	config      gateway.Config
	options     gateway.Options
	environment secret.Presentation
	mayStart    func(person string) bool
	registry    *stream.Registry
	events      *stream.Store
	failure     atomic.Pointer[error] // of the last start
}

// New returns an upstream; mayStart counts the starts of each person. The config must be checked.
func New(a gateway.Address, c gateway.Config, o gateway.Options, mayStart func(person string) bool) *Upstream {
	path, _ := a.Path() // Config.Check has reported an error
	return &Upstream{
		address:     a,
		path:        path,
		config:      c,
		options:     o,
		environment: c.Environment(a),
		mayStart:    mayStart,
	}
}

// ProcessesPerPerson returns how many of the processes one person may have.
func ProcessesPerPerson(maxProcesses int) int { return max(1, maxProcesses/20) }

// SessionLimits implements gateway.SessionKeeper.
func (u *Upstream) SessionLimits() (oauth.Limits, time.Duration) {
	return oauth.Limits{
		MaxSessions:          u.config.MaxProcesses,
		MaxSessionsPerPerson: ProcessesPerPerson(u.config.MaxProcesses),
	}, u.config.IdleTimeout
}

// KeepSessions sets the registry that limits the sessions, and ends them with their grants. Call it
// once, before the first request.
func (u *Upstream) KeepSessions(registry *stream.Registry) {
	u.registry, u.events = registry, stream.NewStore(stream.StoreSize, registry.RemoveSession)
}

// Health returns an error if the program could not be started for the last session.
func (u *Upstream) Health() error {
	if failure := u.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// Check reports whether the command is found; only a session starts it.
func (u *Upstream) Check(context.Context) check.Result {
	path, err := u.address.Path()
	if err != nil {
		return check.Mistake(fmt.Sprintf("the command %q cannot be run", u.address.Command),
			"install it where the PATH of the gateway finds it, or write its full path in upstream")
	}
	return check.Result{
		State: check.Works,
		Cause: "the program was found at " + path + "; each session starts it",
	}
}

// Failed returns no channel, because a check finds out nothing about a failed call.
func (u *Upstream) Failed() <-chan struct{} { return nil }

const (
	firstPrimed             = "2025-11-25" // the first revision whose responses begin with an event for resumption
	codeUnsupportedRevision = -32022       // of MCP, for a revision that the server does not have
)

// revisions are those with sessions, which an Upstream serves.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// Forward answers a request to the endpoint. It returns an error only if it has written nothing:
// oauth.ErrNotFound for a session of another caller, oauth.ErrUnknownSession for one that has ended
// or is in another process, or a *gateway.Failure.
func (u *Upstream) Forward(w http.ResponseWriter, r *http.Request, b message.Body, sender oauth.Caller,
	host oauth.HostToken) error {
	if r.Method == http.MethodPost {
		to, finish, acceptable := stream.Negotiate(w, r, b.IsBatch, u.options.Bodies.Reserve(sender.Subject))
		if !acceptable {
			return nil
		}
		defer finish()
		w = to
	}
	isStateless := r.Header.Get(message.VersionHeader) >= message.FirstStateless
	if r.Method != http.MethodPost && isStateless {
		w.Header().Set("Allow", http.MethodPost)
		message.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
		return nil
	}
	id, err := u.options.OpenSession(r.Header, sender)
	switch {
	case err != nil:
		return err
	case id != "":
		s, _ := u.registry.Session(id).(*session)
		// The process has a host token in its environment, so a grant with another one cannot use
		// it, nor keep it alive.
		if s == nil || s.hasEnded() || s.host != hostOf(r, host) || !u.registry.UseSession(id, sender.Grant) {
			return oauth.ErrUnknownSession
		}
		s.serve(w, r, b.Messages)
		return nil
	case r.Method == http.MethodDelete:
		message.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
		return nil
	case r.Method == http.MethodGet:
		w.Header().Set("Allow", http.MethodPost)
		message.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: Mcp-Session-Id is missing")
		return nil
	}
	return u.open(w, r, b.Messages, sender, host)
}

// hostOf returns the digest of the host token of a request. One that another replica has passed on
// has only the digest.
func hostOf(r *http.Request, host oauth.HostToken) oauth.Digest {
	if identity := stream.IdentityOf(r.Context()); identity != nil && identity.Token == "" {
		return identity.HostDigest
	}
	return oauth.DigestOf(host.Reveal())
}

// open answers a POST without a session.
func (u *Upstream) open(w http.ResponseWriter, r *http.Request, messages []message.Message, sender oauth.Caller,
	host oauth.HostToken) error {
	requested := r.Header.Get(message.VersionHeader)
	switch {
	case requested >= message.FirstStateless, messages[0].IsStateless():
		// The client then initializes a session. Texts always encode.
		data, _ := json.Marshal(map[string]any{"supported": revisions, "requested": requested})
		failure := &rpc.Error{Code: codeUnsupportedRevision,
			Message: "a program over stdio has sessions: initialize one", Data: data}
		attempt.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, "U22", failure.Message))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(message.ErrorResponse(messages[0].ID, failure).Encode())
		return nil
	case len(messages) > 1, !messages[0].IsCall(), messages[0].Method != "initialize":
		message.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
		return nil
	}
	s, err := u.start(r, sender, host)
	if err != nil {
		return err
	}
	bound, err := u.options.Sessions.BindSession(s.id, sender.SessionOwner(u.options.Resource))
	if err != nil {
		s.end(errClosed)
		return fmt.Errorf("binding a session id: %w", err)
	}
	return s.initialize(w, r, messages, bound)
}

// failed returns the failure of a session that cannot be opened.
func failed(status int, rule, text string, cause error) error {
	return &gateway.Failure{
		Status: status,
		Rule:   rule,
		Text:   "The MCP server program behind this gateway " + text,
		Cause:  cause,
	}
}

// The causes of the end of a session besides the end of its program.
var (
	errClosed   = errors.New("the session was closed")
	errStart    = errors.New("it did not answer initialize in time")
	errRefused  = errors.New("it refused to initialize")
	errInput    = errors.New("it does not read its input")
	errNoMemory = errors.New("its message does not fit into the memory for bodies, which other messages of this " +
		"person or of all people use: read those, and call again")
	errLongMessage = errors.New("it sent a message that is too long")
)
