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

// IsDraining reports whether Drain was called.
func (o *Registry) IsDraining() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.draining
}

// AddSession registers a session, and returns false if it may not be opened. Beyond the limits it ends the session that has been idle longest
// (G20). It ignores a session without an id, which ends with its request.
func (o *Registry) AddSession(session Session, caller *oauth.Caller) (added bool) {
	evicted, added := o.admit(session, caller)
	if evicted != nil {
		o.reportEviction("session", slices.Sorted(maps.Keys(evicted.grants)))
	}
	return added
}

func (o *Registry) admit(session Session, caller *oauth.Caller) (evicted *openSession, added bool) {
	id := session.ID()
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.sessions[id]; known || id == "" {
		return nil, true
	}
	if o.draining || o.evicted.has(id) {
		return nil, false
	}
	if other, evicts := o.limiter.Add(id, caller.Subject); evicts {
		evicted = o.sessions[other]
		delete(o.sessions, other)
		o.evicted.add(other)
		evicted.end()
	}
	o.sessions[id] = &openSession{grants: map[string]bool{caller.Grant: true}, session: session}
	return evicted, true
}

// reportEviction counts and logs the eviction of a session or stream.
func (o *Registry) reportEviction(what string, grants []string) {
	o.options.Limited.Observe(oauth.LimitSessions, oauth.LimitEvicted)
	o.options.Logger.Info("the idlest MCP "+what+" ended for a new one", "rule", "G20", "grant", strings.Join(grants, " "))
}

// UseSession records that a grant of the same owner uses a session, as after a step-up: the session ends with the last of its grants. It returns
// false if the session is closing.
func (o *Registry) UseSession(id, grant string) (usable bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	session, known := o.sessions[id]
	if !known {
		return true
	}
	if _, ended := o.ended[grant]; !ended {
		session.grants[grant] = true
	}
	return !session.closing
}

// BeginCall marks a session as busy until EndCall, so that it is not evicted as idle.
func (o *Registry) BeginCall(session string) {
	if session == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limiter.BeginCall(session)
}

// EndCall ends what BeginCall began.
func (o *Registry) EndCall(session string) {
	if session == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limiter.EndCall(session)
}

// RemoveSession removes a session that has ended.
func (o *Registry) RemoveSession(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sessions, id)
	o.limiter.Remove(id)
}

// WasEvicted reports whether a session was evicted recently.
func (o *Registry) WasEvicted(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.sessions[id]
	return !known && o.evicted.has(id)
}
