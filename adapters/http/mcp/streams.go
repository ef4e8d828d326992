package mcp

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

// registry knows every answer under way and every session, so that all of a grant can be ended at once.
type registry struct {
	authorization Authorization
	resource      oauth.Resource
	now           func() time.Time
	interval      time.Duration
	linger        time.Duration
	logger        *slog.Logger
	limited       oauth.LimitObserver
	relays        bool // whose answers come from an upstream

	mu       sync.Mutex
	draining bool
	ticking  bool
	ticks    int
	streams  map[*stream]struct{}
	sessions map[string]*held // by id
	places   *oauth.Occupancy[string]
	relayed  *oauth.Occupancy[*stream] // long ones
	evicted  recentSessions
	ended    map[string]time.Time // grants, for endedMemory: a request that was admitted before may come late
}

func newRegistry(s *Server) *registry {
	return &registry{
		authorization: s.options.Authorization, resource: s.options.Resource, now: s.options.Now,
		interval: beatInterval, linger: linger, logger: s.options.Logger, limited: s.options.Limited,
		streams: map[*stream]struct{}{}, sessions: map[string]*held{}, ended: map[string]time.Time{},
		places: oauth.NewOccupancy[string](s.options.Limits), relayed: oauth.NewOccupancy[*stream](s.options.Limits),
	}
}

// answer begins the answer to a request whose steps are noted under ctx.
func (g *registry) answer(w http.ResponseWriter, r *http.Request, ctx context.Context) (*stream, *http.Request) {
	out := &stream{ending: &ending{Context: ctx}, noted: noted{ResponseWriter: w, walk: trace.From(ctx)}, registry: g, relayed: g.relays}
	out.ResponseWriter, out.control = &out.noted, *http.NewResponseController(&out.noted)
	out.request = *r.WithContext(out.ending)
	return out, &out.request
}

// open ties an answer to the grant that it is given for.
func (g *registry) open(out *stream, who *identity) {
	out.who = who
	g.mu.Lock()
	defer g.mu.Unlock()
	out.opened, out.beaten = g.ticks, g.ticks
	g.streams[out] = struct{}{}
	if !g.ticking {
		g.ticking = true
		time.AfterFunc(g.period(), g.tick)
	}
}

// period is that of the one clock for all answers: a timer for each would cost more than most answers last.
func (g *registry) period() time.Duration { return min(time.Second, g.interval) }

// tick goes on while there are answers.
func (g *registry) tick() {
	if g.pulse() {
		time.AfterFunc(g.period(), g.tick)
	}
}

// pulse is one period. What has to be done may wait for clients, so each is done apart.
func (g *registry) pulse() (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ticks++
	for s := range g.streams {
		if g.ticks-s.opened == int(bodyLimit/g.period()) {
			go s.hurry()
		}
		if g.ticks-s.beaten >= int(g.interval/g.period()) {
			s.beaten = g.ticks
			go s.beat()
		}
	}
	g.ticking = len(g.streams) > 0
	return g.ticking
}

func (g *registry) isLong(s *stream) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.long
}

// lasts marks a stream as long; one that comes while the server shuts down ends at once.
func (g *registry) lasts(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.long = true
	if g.draining {
		s.end(errDraining)
	}
}

// relay gives a long stream of a gateway a place. When there are too many, it ends another one (G20). It counts streams, because the sessions
// are the upstream's.
func (g *registry) relay(s *stream) {
	g.mu.Lock()
	evicted, evicts := g.relayed.Open(s, s.who.caller.Subject)
	g.mu.Unlock()
	if evicts {
		evicted.end(errEvicted)
		g.noteEviction("stream", []string{evicted.who.caller.Grant})
	}
}

func (g *registry) close(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.streams, s)
	g.relayed.Close(s)
}

// revoked asks about a stream's token again. An outage revokes nothing.
func (g *registry) revoked(s *stream) bool {
	_, err := g.authorization.Authenticate(trace.Without(s), s.who.token, g.resource) // the walk is the handler's
	return err != nil && isInvalidToken(err)
}

// endedMemory is longer than a request takes from its guard to its session, also at another replica.
const endedMemory = time.Minute

// end closes whatever was given for what has ended. A call with a token that was revoked alone may finish.
func (g *registry) end(ended oauth.Ended) {
	grants, tokens := setOf(ended.Grants), setOf(ended.Tokens)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(g.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endedMemory })
	for grant := range grants {
		g.ended[grant] = now
	}
	for s := range g.streams {
		if grants[s.who.caller.Grant] || len(tokens) > 0 && s.lasting() && tokens[s.who.digest()] {
			s.end(errOver)
		}
	}
	for _, session := range g.sessions {
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

// idle reports that there is nothing to end.
func (g *registry) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.streams)+len(g.sessions) == 0
}

func (g *registry) numbers() (streams, sessions int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.streams {
		if s.long {
			streams++
		}
	}
	return streams, len(g.sessions)
}

func (g *registry) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	for s := range g.streams {
		if s.long {
			s.end(errDraining)
		}
	}
	for _, session := range g.sessions {
		session.end()
	}
}
