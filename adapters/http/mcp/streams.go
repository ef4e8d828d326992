package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/domain/oauth"
)

// beatInterval is how often a stream shows that it is alive and asks whether its token still holds: often enough for proxies
// that close idle connections after 30 s, and for a revocation in another process to be seen within a minute (G16).
const beatInterval = 25 * time.Second

// registry knows every answer under way and every session, so that all of a grant can be ended at once.
type registry struct {
	authorization Authorization
	resource      oauth.Resource
	now           func() time.Time
	interval      time.Duration
	limit         int
	limitPerGrant int

	mu       sync.Mutex
	draining bool
	streams  map[*stream]struct{}
	sessions map[*sdk.ServerSession]string // grants
	perGrant map[string]int                // sessions
	owners   map[string]string             // grants by session id
}

func newRegistry(s *Server) *registry {
	return &registry{
		authorization: s.options.Authorization, resource: s.options.Resource, now: s.options.Now,
		interval: beatInterval, limit: s.options.MaxSessions, limitPerGrant: s.options.MaxSessionsPerGrant,
		streams: map[*stream]struct{}{}, sessions: map[*sdk.ServerSession]string{}, perGrant: map[string]int{}, owners: map[string]string{},
	}
}

// open ties the answer to the grant that it is given for.
func (g *registry) open(w http.ResponseWriter, r *http.Request) (*stream, *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	out := &stream{ResponseWriter: w, control: http.NewResponseController(w), who: identityOf(r.Context()), ctx: ctx, cancel: cancel, registry: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.streams[out] = struct{}{}
	return out, r.WithContext(ctx)
}

// lasts marks a stream as long; one that comes while the server shuts down ends at once.
func (g *registry) lasts(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.long = true
	if g.draining {
		s.cancel()
	}
}

func (g *registry) close(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.streams, s)
}

// revoked asks about a stream's token again. An outage revokes nothing.
func (g *registry) revoked(s *stream) bool {
	_, err := g.authorization.Authenticate(s.ctx, s.who.token, g.resource)
	return err != nil && isInvalidToken(err)
}

// full reports that no session of the grant can be admitted now.
func (g *registry) full(grant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isFull(grant)
}

func (g *registry) isFull(grant string) bool {
	return g.draining || len(g.sessions) >= g.limit || g.perGrant[grant] >= g.limitPerGrant
}

// add admits a session of a grant; known tells that it was admitted before.
func (g *registry) add(session *sdk.ServerSession, grant string) (known, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.sessions[session]; known {
		return true, true
	}
	if g.isFull(grant) {
		return false, false
	}
	g.sessions[session], g.owners[session.ID()] = grant, grant
	g.perGrant[grant]++
	return false, true
}

func (g *registry) remove(session *sdk.ServerSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	grant, known := g.sessions[session]
	if !known {
		return
	}
	delete(g.sessions, session)
	delete(g.owners, session.ID())
	if g.perGrant[grant]--; g.perGrant[grant] == 0 {
		delete(g.perGrant, grant)
	}
}

// foreign reports that the session belongs to another grant.
func (g *registry) foreign(session, grant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	owner, known := g.owners[session]
	return known && owner != grant
}

func (g *registry) closeGrant(grant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.streams {
		if s.who.caller.Grant == grant {
			s.cancel()
		}
	}
	for session, owner := range g.sessions {
		if owner == grant {
			go session.Close() // waits for its calls
		}
	}
}

func (g *registry) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	for s := range g.streams {
		if s.long {
			s.cancel()
		}
	}
	for session := range g.sessions {
		go session.Close()
	}
}

// admitSession counts a session that came over HTTP until it ends; the SDK itself knows no limit.
func (s *Server) admitSession(req sdk.Request, grant string) error {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if extra := req.GetExtra(); !ok || extra == nil || extra.Header == nil {
		return nil
	}
	known, ok := s.streams.add(session, grant)
	if !ok {
		return &jsonrpc.Error{Code: codeRefused, Message: "too many open sessions"}
	}
	if !known {
		go func() {
			_ = session.Wait()
			s.streams.remove(session)
		}()
	}
	return nil
}
