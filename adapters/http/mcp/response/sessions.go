package response

import (
	"maps"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Session is a session of the SDK's server.
type Session interface {
	ID() string
	Close() error
}

// openSession is a session of the registry.
type openSession struct {
	grants  map[string]bool // that have used it and have not ended
	session Session
	closing bool
}

// end closes the session in the background, because Close waits for its calls.
func (s *openSession) end() {
	if !s.closing {
		s.closing = true
		go s.session.Close()
	}
}

// removeGrants removes grants that have ended, and returns the number of those that are left.
func (s *openSession) removeGrants(ended map[string]bool) (left int) {
	maps.DeleteFunc(s.grants, func(grant string, _ bool) bool { return ended[grant] })
	return len(s.grants)
}

// recentSessions are the ids of the last thousand sessions that were evicted, or ended with their grant.
type recentSessions struct {
	ids  [1000]string
	next int
}

func (r *recentSessions) add(id string) {
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
}

func (r *recentSessions) has(id string) bool { return id != "" && slices.Contains(r.ids[:], id) }

// IsDraining reports whether Drain was called.
func (r *Registry) IsDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// AddSession registers a session, and returns false if it may not be opened. Beyond the limits it ends the session that has been idle longest
// (G20). It ignores a session without an id, which ends with its request.
func (r *Registry) AddSession(session Session, caller *oauth.Caller) (added bool) {
	evicted, added := r.admit(session, caller)
	if evicted != nil {
		r.reportEviction("session", slices.Sorted(maps.Keys(evicted.grants)))
	}
	return added
}

func (r *Registry) admit(session Session, caller *oauth.Caller) (evicted *openSession, added bool) {
	id := session.ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.sessions[id]; known || id == "" {
		return nil, true
	}
	if r.draining || r.evicted.has(id) {
		return nil, false
	}
	if other, evicts := r.limiter.Add(id, caller.Subject); evicts {
		evicted = r.sessions[other]
		delete(r.sessions, other)
		r.evicted.add(other)
		evicted.end()
	}
	r.sessions[id] = &openSession{grants: map[string]bool{caller.Grant: true}, session: session}
	return evicted, true
}

// reportEviction counts and logs the eviction of a session or stream.
func (r *Registry) reportEviction(what string, grants []string) {
	r.options.Limited.Observe(oauth.LimitSessions, oauth.LimitEvicted)
	r.options.Logger.Info("the idlest MCP "+what+" ended for a new one", "rule", "G20", "grant", strings.Join(grants, " "))
}

// UseSession records that a grant of the same owner uses a session, as after a step-up: the session ends with the last of its grants. It returns
// false if the session is closing.
func (r *Registry) UseSession(id, grant string) (usable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	session, known := r.sessions[id]
	if !known {
		return !r.closed.has(id) // the handler of the SDK may still know it for a moment
	}
	if _, ended := r.ended[grant]; !ended {
		session.grants[grant] = true
	}
	return !session.closing
}

// BeginCall marks a session as busy until EndCall, so that it is not evicted as idle.
func (r *Registry) BeginCall(session string) {
	if session == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiter.BeginCall(session)
}

// EndCall ends what BeginCall began.
func (r *Registry) EndCall(session string) {
	if session == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiter.EndCall(session)
}

// RemoveSession removes a session that has ended.
func (r *Registry) RemoveSession(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if session, known := r.sessions[id]; known && session.closing {
		r.closed.add(id)
	}
	delete(r.sessions, id)
	r.limiter.Remove(id)
}

// WasEvicted reports whether a session was evicted recently.
func (r *Registry) WasEvicted(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.sessions[id]
	return !known && r.evicted.has(id)
}
