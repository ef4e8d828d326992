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

// openSession is a session under way. Close waits for its calls, so end calls it only once, in the background.
type openSession struct {
	grants  map[string]bool // living ones that have used it
	session Session
	ending  bool
}

func (h *openSession) end() {
	if !h.ending {
		h.ending = true
		go h.session.Close()
	}
}

// loses removes grants that have ended, and reports whether none is left.
func (h *openSession) loses(ended map[string]bool) bool {
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

// IsDraining reports whether the service is shutting down and opens no more sessions.
func (o *OpenSet) IsDraining() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.draining
}

// AddSession gives a session a place, unless it has one already, and reports false when it may not be opened. When there are too many, it ends another
// one (G20). A session without an id needs no place, because it ends with its request.
func (o *OpenSet) AddSession(session Session, caller *oauth.Caller) (added bool) {
	evicted, added := o.place(session, caller)
	if evicted != nil {
		o.noteEviction("session", slices.Sorted(maps.Keys(evicted.grants)))
	}
	return added
}

func (o *OpenSet) place(session Session, caller *oauth.Caller) (evicted *openSession, added bool) {
	id := session.ID()
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.sessions[id]; known || id == "" {
		return nil, true
	}
	if o.draining || o.evicted.has(id) {
		return nil, false
	}
	if other, evicts := o.places.Open(id, caller.Subject); evicts {
		evicted = o.sessions[other]
		delete(o.sessions, other)
		o.evicted.add(other)
		evicted.end()
	}
	o.sessions[id] = &openSession{grants: map[string]bool{caller.Grant: true}, session: session}
	return evicted, true
}

// noteEviction counts and logs a session or stream that ended for a new one, with its grants.
func (o *OpenSet) noteEviction(what string, grants []string) {
	o.options.Limited.Observe(oauth.LimitSessions, oauth.LimitEvicted)
	o.options.Logger.Info("the idlest MCP "+what+" ended for a new one", "rule", "G20", "grant", strings.Join(grants, " "))
}

// UseSession records that a grant of the same owner uses a session, as after a step-up: the session ends with the last of its grants. It reports
// false when the session is already closing.
func (o *OpenSet) UseSession(id, grant string) (usable bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	session, known := o.sessions[id]
	if !known {
		return true
	}
	if _, ended := o.ended[grant]; !ended {
		session.grants[grant] = true
	}
	return !session.ending
}

func (o *OpenSet) BeginCall(session string) {
	if session == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.places.Begin(session)
}

func (o *OpenSet) EndCall(session string) {
	if session == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.places.End(session)
}

func (o *OpenSet) RemoveSession(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sessions, id)
	o.places.Close(id)
}

// WasEvicted reports whether a session has ended for another one lately.
func (o *OpenSet) WasEvicted(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.sessions[id]
	return !known && o.evicted.has(id)
}
