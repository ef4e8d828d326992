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

// beatInterval is how often a stream shows that it is alive, for proxies that close idle connections after 30 s, and asks whether its
// token still holds: for stores that cannot tell what has ended in another process (G16).
const beatInterval = 25 * time.Second

// Authorization checks an access token again while its response goes on. It refuses with oauth.InvalidToken; any other error is an outage.
type Authorization interface {
	Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error)
}

// Options are what an OpenSet needs of the MCP server whose responses it holds.
type Options struct {
	Authorization Authorization
	Resource      oauth.Resource
	Relays        bool         // the responses come from an upstream
	Limits        oauth.Limits // MaxSessions and MaxSessionsPerPerson
	Limited       oauth.LimitObserver
	Now           func() time.Time
	Logger        *slog.Logger
}

// OpenSet knows every answer under way and every session, so that all of a grant can be ended at once.
type OpenSet struct {
	KeepAlive  time.Duration // between two signs of life of a stream; set it before the first response, as FlushDelay
	FlushDelay time.Duration // how long what a call has brought waits for the end of its answer

	options Options

	mu       sync.Mutex
	draining bool
	ticking  bool
	ticks    int
	streams  map[*Writer]struct{}
	sessions map[string]*openSession // by id
	places   *oauth.Occupancy[string]
	relayed  *oauth.Occupancy[*Writer] // long ones
	evicted  recentSessions
	ended    map[string]time.Time // grants, for endedMemory: a request that was admitted before may come late
}

// NewOpenSet makes an empty set.
func NewOpenSet(o Options) *OpenSet {
	return &OpenSet{
		KeepAlive: beatInterval, FlushDelay: linger, options: o,
		streams: map[*Writer]struct{}{}, sessions: map[string]*openSession{}, ended: map[string]time.Time{},
		places: oauth.NewOccupancy[string](o.Limits), relayed: oauth.NewOccupancy[*Writer](o.Limits),
	}
}

// NewWriter begins the answer to a request whose steps are noted under ctx.
func (o *OpenSet) NewWriter(w http.ResponseWriter, r *http.Request, ctx context.Context) (*Writer, *http.Request) {
	out := &Writer{ctx: newEndableContext(ctx), traced: tracedWriter{ResponseWriter: w, recorder: trace.From(ctx)}, set: o, relayed: o.options.Relays}
	out.ResponseWriter, out.control = &out.traced, *http.NewResponseController(&out.traced)
	out.request = *r.WithContext(out.ctx)
	return out, &out.request
}

// open ties an answer to the grant that it is given for.
func (o *OpenSet) open(out *Writer, who *Identity) {
	out.ctx.who = who
	o.mu.Lock()
	defer o.mu.Unlock()
	out.opened, out.beaten = o.ticks, o.ticks
	o.streams[out] = struct{}{}
	if !o.ticking {
		o.ticking = true
		time.AfterFunc(o.period(), o.tick)
	}
}

// period is that of the one clock for all answers: a timer for each would cost more than most answers last.
func (o *OpenSet) period() time.Duration { return min(time.Second, o.KeepAlive) }

// tick goes on while there are answers.
func (o *OpenSet) tick() {
	if o.pulse() {
		time.AfterFunc(o.period(), o.tick)
	}
}

// pulse is one period. What has to be done may wait for clients, so each is done apart.
func (o *OpenSet) pulse() (more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticks++
	for w := range o.streams {
		if o.ticks-w.opened == int(bodyLimit/o.period()) {
			go w.hurry()
		}
		if o.ticks-w.beaten >= int(o.KeepAlive/o.period()) {
			w.beaten = o.ticks
			go w.beat()
		}
	}
	o.ticking = len(o.streams) > 0
	return o.ticking
}

func (o *OpenSet) isLong(w *Writer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return w.long
}

// lasts marks a stream as long; one that comes while the server shuts down ends at once.
func (o *OpenSet) lasts(w *Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.long = true
	if o.draining {
		w.End(ErrDraining)
	}
}

func (o *OpenSet) close(w *Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.streams, w)
	o.relayed.Close(w)
}

// revoked asks about a stream's token again. An outage revokes nothing.
func (o *OpenSet) revoked(w *Writer) bool {
	_, err := o.options.Authorization.Authenticate(trace.Without(w.ctx), w.ctx.who.Token, o.options.Resource) // the recorder is the handler's
	kind, refused := oauth.KindOf(err)
	return refused && kind == oauth.InvalidToken
}

// endedMemory is longer than a request takes from its guard to its session, also at another replica.
const endedMemory = time.Minute

// End closes the responses and sessions of ended grants, and the responses of revoked tokens. A call with a token that was revoked alone may finish.
func (o *OpenSet) End(ended oauth.Ended) {
	grants, tokens := setOf(ended.Grants), setOf(ended.Tokens)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(o.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endedMemory })
	for grant := range grants {
		o.ended[grant] = now
	}
	for w := range o.streams {
		if grants[w.ctx.who.Caller.Grant] || len(tokens) > 0 && w.lasting() && tokens[w.ctx.who.digest()] {
			w.End(ErrEnded)
		}
	}
	for _, session := range o.sessions {
		if session.loses(grants) {
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

// Idle reports that there is nothing to end.
func (o *OpenSet) Idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.streams)+len(o.sessions) == 0
}

func (o *OpenSet) Count() (streams, sessions int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.streams {
		if w.long {
			streams++
		}
	}
	return streams, len(o.sessions)
}

func (o *OpenSet) Drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.draining = true
	for w := range o.streams {
		if w.long {
			w.End(ErrDraining)
		}
	}
	for _, session := range o.sessions {
		session.end()
	}
}
