package mcp

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
)

// held is an open session. Close waits for its calls, so end calls it only once, in the background.
type held struct {
	grants  map[string]bool // living ones that have used it
	session *sdk.ServerSession
	ending  bool
}

func (h *held) end() {
	if !h.ending {
		h.ending = true
		go h.session.Close()
	}
}

// loses removes grants that have ended, and reports whether none is left.
func (h *held) loses(ended map[string]bool) bool {
	maps.DeleteFunc(h.grants, func(grant string, _ bool) bool { return ended[grant] })
	return len(h.grants) == 0
}

// recentSessions are the ids of the last thousand sessions that were evicted.
type recentSessions struct {
	ids  [1000]string
	next int
}

func (r *recentSessions) add(id string) {
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
}

func (r *recentSessions) has(id string) bool { return id != "" && slices.Contains(r.ids[:], id) }

// isDraining reports whether the service is shutting down and opens no more sessions.
func (g *registry) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// add gives a session a place, unless it has one already, and reports false when it may not be opened. When there are too many, it ends another
// one (G20). A session without an id needs no place, because it ends with its request.
func (g *registry) add(session *sdk.ServerSession, caller *oauth.Caller) (added bool) {
	evicted, added := g.place(session, caller)
	if evicted != nil {
		g.noteEviction("session", slices.Sorted(maps.Keys(evicted.grants)))
	}
	return added
}

func (g *registry) place(session *sdk.ServerSession, caller *oauth.Caller) (evicted *held, added bool) {
	id := session.ID()
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.sessions[id]; known || id == "" {
		return nil, true
	}
	if g.draining || g.evicted.has(id) {
		return nil, false
	}
	if other, evicts := g.places.Open(id, caller.Subject); evicts {
		evicted = g.sessions[other]
		delete(g.sessions, other)
		g.evicted.add(other)
		evicted.end()
	}
	g.sessions[id] = &held{grants: map[string]bool{caller.Grant: true}, session: session}
	return evicted, true
}

// noteEviction counts and logs a session or stream that ended for a new one, with its grants.
func (g *registry) noteEviction(what string, grants []string) {
	g.limited.Observe(oauth.LimitSessions, oauth.LimitEvicted)
	g.logger.Info("the idlest MCP "+what+" ended for a new one", "rule", "G20", "grant", strings.Join(grants, " "))
}

// use records that a grant of the same owner uses a session, as after a step-up: the session ends with the last of its grants.
func (g *registry) use(id, grant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, over := g.ended[grant]; over {
		return
	}
	if its, known := g.sessions[id]; known {
		its.grants[grant] = true
	}
}

func (g *registry) beginCall(session string) {
	if session == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places.Begin(session)
}

func (g *registry) endCall(session string) {
	if session == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places.End(session)
}

func (g *registry) remove(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, id)
	g.places.Close(id)
}

// wasEvicted reports whether a session has ended for another one lately.
func (g *registry) wasEvicted(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.sessions[id]
	return !known && g.evicted.has(id)
}

// admitSession gives a session over HTTP a place until it ends, because the SDK has no limit.
func (s *Server) admitSession(req sdk.Request, caller *oauth.Caller) error {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if extra := req.GetExtra(); !ok || extra == nil || extra.Header == nil {
		return nil
	}
	if !s.streams.add(session, caller) {
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
	if !s.streams.wasEvicted(session) {
		return false
	}
	refuseSession(w, r, "G20", evictedSession)
	return true
}
