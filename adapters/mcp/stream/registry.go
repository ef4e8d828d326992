// Package stream writes the responses of an MCP endpoint. They may be long streams, and they end
// with the grant of their caller. Store keeps their events for clients whose connection breaks.
//
// Registry.NewWriter begins a response: a Writer is an http.ResponseWriter with the context of its
// request. Identify sets the caller, ReadBody reads the request, Begin starts keep-alive comments
// and the timer for the end of the access token, and Finish ends the response. The Registry also
// holds the sessions of the MCP server: End ends the responses and sessions of a grant, Drain ends
// all.
package stream

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// Authorization checks the access token of an open response. It refuses with oauth.InvalidToken;
// any other error is an outage.
type Authorization interface {
	Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error)
}

// Options configure a Registry.
type Options struct {
	Authorization Authorization
	Resource      oauth.Resource
	Relays        bool         // the responses come from an upstream
	Limits        oauth.Limits // MaxSessions and MaxSessionsPerPerson
	StreamLimits  oauth.Limits // the same of relayed streams
	Limited       quota.Observer
	IdleTimeout   time.Duration // of a session that no request uses; 0 for none
	Now           func() time.Time
	Logger        *slog.Logger
}

// Registry holds the responses under way and the open sessions of one MCP server, and ends those of
// a grant.
type Registry struct {
	// Change these three before the first response. KeepAlive is the time between keep-alive
	// comments, after which a stream also checks its token again, for stores that do not report
	// grants ended by other processes. BodyLimit is the time for a whole body. After WriteLimit, a
	// client that does not read loses its response; it may resume one of a session.
	KeepAlive, BodyLimit, WriteLimit time.Duration

	options Options

	mu        sync.Mutex
	draining  bool
	responses map[*Writer]struct{}
	sessions  map[string]*openSession // by id
	limiter   *quota.OpenSessions[string]
	relayed   *quota.OpenSessions[*Writer] // long streams of the upstream
	evicted   recentSessions
	closed    recentSessions
	ended     map[string]time.Time // grants, for a minute or longer: a request that was admitted before may come late
}

// NewRegistry returns an empty registry.
func NewRegistry(o Options) *Registry {
	return &Registry{
		KeepAlive:  25 * time.Second, // proxies close idle connections after 30 s
		BodyLimit:  30 * time.Second,
		WriteLimit: 10 * time.Second,
		options:    o,
		responses:  map[*Writer]struct{}{},
		sessions:   map[string]*openSession{},
		ended:      map[string]time.Time{},
		limiter:    quota.NewOpenSessions[string](o.Limits.MaxSessions, o.Limits.MaxSessionsPerPerson),
		relayed:    quota.NewOpenSessions[*Writer](o.StreamLimits.MaxSessions, o.StreamLimits.MaxSessionsPerPerson),
	}
}

// NewWriter begins the response to a request, with the context of its attempt to connect. The
// returned request has that of the response.
func (r *Registry) NewWriter(w http.ResponseWriter, request *http.Request, ctx context.Context) (*Writer,
	*http.Request) {
	traced := &tracedWriter{ResponseWriter: w, recorder: attempt.From(ctx)}
	out := &Writer{
		ResponseWriter: traced,
		ctx:            newContext(ctx),
		control:        http.NewResponseController(traced),
		registry:       r,
	}
	out.request = request.WithContext(out.ctx)
	return out, out.request
}

// isRevoked checks the token of a response again. An outage revokes nothing. Without a token,
// another replica checks it.
func (r *Registry) isRevoked(w *Writer) bool {
	if w.ctx.identity.Token == "" {
		return false
	}
	ctx := attempt.Begin(w.ctx, "", "", "") // not the recorder of w, which its handler uses
	_, err := r.options.Authorization.Authenticate(ctx, w.ctx.identity.Token, r.options.Resource)
	return IsInvalidToken(err)
}

// End ends the responses and sessions of ended grants, and the streams of revoked tokens. A call to
// a server in this process may finish after its token alone was revoked.
func (r *Registry) End(ended oauth.Ended) {
	tokens := map[oauth.Digest]bool{}
	for _, token := range ended.Tokens {
		tokens[token] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.ended, func(_ string, at time.Time) bool { return now.Sub(at) > time.Minute })
	for grant := range ended.Grants {
		r.ended[grant] = now
	}
	for w := range r.responses {
		if has(ended.Grants, w.ctx.identity.Caller.Grant) ||
			len(tokens) > 0 && (w.long || w.IsRelayed()) && tokens[oauth.DigestOf(w.ctx.identity.Token)] {
			w.End(ErrEnded)
		}
	}
	for _, session := range r.sessions {
		maps.DeleteFunc(session.grants, func(grant string, _ bool) bool { return has(ended.Grants, grant) })
		if len(session.grants) == 0 {
			session.end(ErrEnded)
		}
	}
}

func has(ended map[string]oauth.EndedGrant, grant string) bool {
	_, found := ended[grant]
	return found
}

// Idle reports whether all responses and sessions have ended.
func (r *Registry) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.responses)+len(r.sessions) == 0
}

// Count returns the numbers of streams and of sessions.
func (r *Registry) Count() (streams, sessions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.responses {
		if w.long {
			streams++
		}
	}
	return streams, len(r.sessions)
}

// Drain ends all streams and sessions, and admits no new ones.
func (r *Registry) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	for w := range r.responses {
		if w.long {
			w.End(ErrDraining)
		}
	}
	for _, session := range r.sessions {
		session.end(ErrDraining)
	}
}

// tracedWriter records the status in the trace before it is sent.
type tracedWriter struct {
	http.ResponseWriter
	recorder *attempt.Recorder
	status   int // 0 before it is sent
}

func (t *tracedWriter) record(status int) {
	if t.status > 0 || status < http.StatusOK {
		return
	}
	t.status = status
	t.recorder.Answer(status)
}

func (t *tracedWriter) WriteHeader(status int) {
	t.record(status)
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracedWriter) Write(p []byte) (int, error) {
	t.record(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// FlushError is called by http.ResponseController.
func (t *tracedWriter) FlushError() error {
	t.record(http.StatusOK)
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is called by http.ResponseController, which sets deadlines.
func (t *tracedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
