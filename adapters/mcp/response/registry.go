package response

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// keepAliveInterval is shorter than the 30 s after which proxies close idle connections. At each
// interval a stream also checks its token again, for stores that do not report grants ended by
// other processes.
const keepAliveInterval = 25 * time.Second

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
	StreamLimits  oauth.Limits // the same of relayed streams; without them, those of Limits
	Limited       oauth.LimitObserver
	IdleTimeout   time.Duration // of a session that no request uses; 0 for none
	Now           func() time.Time
	Logger        *slog.Logger
}

// Registry holds the responses under way and the open sessions of one MCP server, and ends those of
// a grant.
type Registry struct {
	KeepAlive  time.Duration // between keep-alive comments; set it and FlushDelay before the first response
	FlushDelay time.Duration // see flushDelay

	options Options
	streams oauth.Limits

	mu        sync.Mutex
	draining  bool
	ticking   bool
	ticks     int
	responses map[*Writer]struct{}
	sessions  map[string]*openSession // by id
	limiter   *oauth.SessionLimiter[string]
	relayed   *oauth.SessionLimiter[*Writer] // long streams of the upstream
	evicted   recentSessions
	closed    recentSessions
	ended     map[string]time.Time // grants, for endedMemory: a request that was admitted before may come late
}

// NewRegistry returns an empty registry.
func NewRegistry(o Options) *Registry {
	streams := o.StreamLimits
	if streams.MaxSessions == 0 {
		streams = o.Limits
	}
	return &Registry{
		KeepAlive:  keepAliveInterval,
		FlushDelay: flushDelay,
		options:    o,
		streams:    streams,
		responses:  map[*Writer]struct{}{},
		sessions:   map[string]*openSession{},
		ended:      map[string]time.Time{},
		limiter:    oauth.NewSessionLimiter[string](o.Limits),
		relayed:    oauth.NewSessionLimiter[*Writer](streams),
	}
}

// NewWriter begins the response to a request. The returned request has its context.
func (r *Registry) NewWriter(w http.ResponseWriter, request *http.Request, ctx context.Context) (*Writer,
	*http.Request) {
	out := &Writer{
		ctx:      newContext(ctx),
		traced:   tracedWriter{ResponseWriter: w, recorder: trace.From(ctx)},
		registry: r,
		relayed:  r.options.Relays,
	}
	out.ResponseWriter, out.control = &out.traced, *http.NewResponseController(&out.traced)
	out.request = *request.WithContext(out.ctx)
	return out, &out.request
}

// add registers a response under the identity of its caller.
func (r *Registry) add(out *Writer, identity *Identity) {
	out.ctx.identity = identity
	r.mu.Lock()
	defer r.mu.Unlock()
	out.addedAt, out.refreshedAt = r.ticks, r.ticks
	r.responses[out] = struct{}{}
	if !r.ticking {
		r.ticking = true
		time.AfterFunc(r.period(), r.tick)
	}
}

// period is the interval of one timer for all responses: a timer for each would cost more than most
// responses do.
func (r *Registry) period() time.Duration { return min(time.Second, r.KeepAlive) }

func (r *Registry) tick() {
	if r.refresh() {
		time.AfterFunc(r.period(), r.tick)
	}
}

// refresh refreshes the responses that are due, in goroutines because writes may wait for clients.
// It reports whether there are responses.
func (r *Registry) refresh() (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks++
	for w := range r.responses {
		if r.ticks-w.addedAt == int(bodyLimit/r.period()) {
			go w.expireBody()
		}
		if r.ticks-w.refreshedAt >= int(r.KeepAlive/r.period()) {
			w.refreshedAt = r.ticks
			go w.refresh()
		}
	}
	r.ticking = len(r.responses) > 0
	return r.ticking
}

func (r *Registry) isLong(w *Writer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.long
}

// markLong marks a response as a stream, and ends it if the server is shutting down.
func (r *Registry) markLong(w *Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.long = true
	if r.draining {
		w.End(ErrDraining)
	}
}

func (r *Registry) remove(w *Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.responses, w)
	r.relayed.Remove(w)
}

// isRevoked checks the token of a response again. An outage revokes nothing.
func (r *Registry) isRevoked(w *Writer) bool {
	// The handler uses the recorder.
	_, err := r.options.Authorization.Authenticate(trace.Without(w.ctx), w.ctx.identity.Token, r.options.Resource)
	kind, refused := oauth.KindOf(err)
	return refused && kind == oauth.InvalidToken
}

// endedMemory is longer than a request takes from its guard to its session, also at another
// replica.
const endedMemory = time.Minute

// End ends the responses and sessions of ended grants, and the streams of revoked tokens. A call
// may finish after its token alone was revoked.
func (r *Registry) End(ended oauth.Ended) {
	grants, tokens := setOf(ended.Grants), setOf(ended.Tokens)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endedMemory })
	for grant := range grants {
		r.ended[grant] = now
	}
	for w := range r.responses {
		if grants[w.ctx.identity.Caller.Grant] || len(tokens) > 0 && w.endsWithToken() &&
			tokens[w.ctx.identity.digest()] {
			w.End(ErrEnded)
		}
	}
	for _, session := range r.sessions {
		if session.removeGrants(grants) == 0 {
			session.end(ErrEnded)
		}
	}
}

func setOf[T comparable](all []T) map[T]bool {
	set := make(map[T]bool, len(all))
	for _, one := range all {
		set[one] = true
	}
	return set
}

// Idle reports whether there is no response and no session.
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
