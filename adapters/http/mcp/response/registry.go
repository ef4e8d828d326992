package response

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// keepAliveInterval is shorter than the 30 s after which proxies close idle connections. At each interval a stream also checks its token again, for
// stores that do not report grants ended by other processes (G16).
const keepAliveInterval = 25 * time.Second

// Authorization checks the access token of an open response. It refuses with oauth.InvalidToken; any other error is an outage.
type Authorization interface {
	Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error)
}

// Options configure a Registry.
type Options struct {
	Authorization Authorization
	Resource      oauth.Resource
	Relays        bool         // the responses come from an upstream
	Limits        oauth.Limits // MaxSessions and MaxSessionsPerPerson
	Limited       oauth.LimitObserver
	Now           func() time.Time
	Logger        *slog.Logger
}

// Registry holds the responses under way and the open sessions of one MCP server, and ends those of a grant (G16).
type Registry struct {
	KeepAlive  time.Duration // between keep-alive comments; set it and FlushDelay before the first response
	FlushDelay time.Duration // see flushDelay

	options Options

	mu        sync.Mutex
	draining  bool
	ticking   bool
	ticks     int
	responses map[*Writer]struct{}
	sessions  map[string]*openSession // by id
	limiter   *oauth.SessionLimiter[string]
	relayed   *oauth.SessionLimiter[*Writer] // long streams of the upstream
	evicted   recentSessions
	ended     map[string]time.Time // grants, for endedMemory: a request that was admitted before may come late
}

// NewRegistry returns an empty registry.
func NewRegistry(o Options) *Registry {
	return &Registry{
		KeepAlive: keepAliveInterval, FlushDelay: flushDelay, options: o,
		responses: map[*Writer]struct{}{}, sessions: map[string]*openSession{}, ended: map[string]time.Time{},
		limiter: oauth.NewSessionLimiter[string](o.Limits), relayed: oauth.NewSessionLimiter[*Writer](o.Limits),
	}
}

// NewWriter begins the response to a request. The returned request has its context.
func (o *Registry) NewWriter(w http.ResponseWriter, r *http.Request, ctx context.Context) (*Writer, *http.Request) {
	out := &Writer{ctx: newContext(ctx), traced: tracedWriter{ResponseWriter: w, recorder: trace.From(ctx)}, registry: o, relayed: o.options.Relays}
	out.ResponseWriter, out.control = &out.traced, *http.NewResponseController(&out.traced)
	out.request = *r.WithContext(out.ctx)
	return out, &out.request
}

// add registers a response under the identity of its caller.
func (o *Registry) add(out *Writer, identity *Identity) {
	out.ctx.identity = identity
	o.mu.Lock()
	defer o.mu.Unlock()
	out.addedAt, out.refreshedAt = o.ticks, o.ticks
	o.responses[out] = struct{}{}
	if !o.ticking {
		o.ticking = true
		time.AfterFunc(o.period(), o.tick)
	}
}

// period is the interval of one timer for all responses: a timer for each would cost more than most responses do.
func (o *Registry) period() time.Duration { return min(time.Second, o.KeepAlive) }

func (o *Registry) tick() {
	if o.refresh() {
		time.AfterFunc(o.period(), o.tick)
	}
}

// refresh refreshes the responses that are due, in goroutines because writes may wait for clients. It reports whether there are responses.
func (o *Registry) refresh() (more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticks++
	for w := range o.responses {
		if o.ticks-w.addedAt == int(bodyLimit/o.period()) {
			go w.expireBody()
		}
		if o.ticks-w.refreshedAt >= int(o.KeepAlive/o.period()) {
			w.refreshedAt = o.ticks
			go w.refresh()
		}
	}
	o.ticking = len(o.responses) > 0
	return o.ticking
}

func (o *Registry) isLong(w *Writer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return w.long
}

// markLong marks a response as a stream, and ends it if the server is shutting down.
func (o *Registry) markLong(w *Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.long = true
	if o.draining {
		w.End(ErrDraining)
	}
}

func (o *Registry) remove(w *Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.responses, w)
	o.relayed.Remove(w)
}

// isRevoked checks the token of a response again. An outage revokes nothing.
func (o *Registry) isRevoked(w *Writer) bool {
	_, err := o.options.Authorization.Authenticate(trace.Without(w.ctx), w.ctx.identity.Token, o.options.Resource) // the handler uses the recorder
	kind, refused := oauth.KindOf(err)
	return refused && kind == oauth.InvalidToken
}

// endedMemory is longer than a request takes from its guard to its session, also at another replica.
const endedMemory = time.Minute

// End ends the responses and sessions of ended grants, and the streams of revoked tokens. A call may finish after its token alone was revoked.
func (o *Registry) End(ended oauth.Ended) {
	grants, tokens := setOf(ended.Grants), setOf(ended.Tokens)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(o.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endedMemory })
	for grant := range grants {
		o.ended[grant] = now
	}
	for w := range o.responses {
		if grants[w.ctx.identity.Caller.Grant] || len(tokens) > 0 && w.endsWithToken() && tokens[w.ctx.identity.digest()] {
			w.End(ErrEnded)
		}
	}
	for _, session := range o.sessions {
		if session.removeGrants(grants) == 0 {
			session.end()
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
func (o *Registry) Idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.responses)+len(o.sessions) == 0
}

// Count returns the numbers of streams and of sessions.
func (o *Registry) Count() (streams, sessions int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.responses {
		if w.long {
			streams++
		}
	}
	return streams, len(o.sessions)
}

// Drain ends all streams and sessions, and admits no new ones.
func (o *Registry) Drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.draining = true
	for w := range o.responses {
		if w.long {
			w.End(ErrDraining)
		}
	}
	for _, session := range o.sessions {
		session.end()
	}
}

const (
	// RetryAfter is the Retry-After header of every 503, in seconds.
	RetryAfter = "5"
	// TooManyBodies is the description of the 503 for a body without memory (G19).
	TooManyBodies = "Too many messages are being processed"
)

// Unavailable answers 503 without a challenge, so that clients keep their tokens (G11).
func Unavailable(w http.ResponseWriter, description string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", RetryAfter)
	WriteError(w, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable.Code(), description)
}

// WriteError answers with an OAuth error (RFC 6749 §5.2).
func WriteError(w http.ResponseWriter, status int, code, description string) {
	body, _ := json.Marshal(map[string]string{"error": code, "error_description": description}) // strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
