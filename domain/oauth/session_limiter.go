package oauth

import (
	"container/list"
)

// SessionLimiter bounds the open sessions of each person and of all people together. It never
// refuses a new session: at a limit it evicts the session that has been idle longest, of the same
// person or, when the total is reached, of the person with the most sessions. It evicts a session
// with running calls only if all sessions of that person have some. SessionLimiter is not safe for
// concurrent use.
type SessionLimiter[S comparable] struct {
	max, maxPerPerson int
	sessions          map[S]*limitedSession[S]
	people            map[string]*personSessions
	clock             uint64 // number of uses so far, which orders the sessions by their last use
}

// limitedSession is an open session.
type limitedSession[S comparable] struct {
	session  S
	owner    *personSessions
	calls    int    // running
	lastUsed uint64 // when a call last began or ended, by SessionLimiter.clock
	element  *list.Element
}

// personSessions are the sessions of a person, without and with running calls, each list with the
// least recently used session first.
type personSessions struct {
	person     string
	idle, busy list.List
}

// NewSessionLimiter returns a limiter without sessions, with the limits MaxSessions and
// MaxSessionsPerPerson.
func NewSessionLimiter[S comparable](limits Limits) *SessionLimiter[S] {
	return &SessionLimiter[S]{
		max: limits.MaxSessions, maxPerPerson: limits.MaxSessionsPerPerson,
		sessions: map[S]*limitedSession[S]{}, people: map[string]*personSessions{},
	}
}

// Add adds a session, or uses one that it has. At a limit it removes another session, which the
// caller has to end.
func (l *SessionLimiter[S]) Add(session S, person string) (evicted S, evicts bool) {
	if known := l.sessions[session]; known != nil {
		known.unlist()
		l.use(known)
		return evicted, false
	}
	if victim := l.victim(person); victim != nil {
		evicted, evicts = victim.session, true
		l.Remove(evicted)
	}
	owner := l.people[person]
	if owner == nil {
		owner = &personSessions{person: person}
		l.people[person] = owner
	}
	added := &limitedSession[S]{session: session, owner: owner}
	l.sessions[session] = added
	l.use(added)
	return evicted, evicts
}

// victim returns the session to evict for a new session of the person, nil below the limits.
func (l *SessionLimiter[S]) victim(person string) *limitedSession[S] {
	owner := l.people[person]
	switch {
	case owner != nil && owner.size() >= l.maxPerPerson:
		return l.idlest(owner)
	case len(l.sessions) >= l.max:
		return l.idlest(l.largest(owner))
	}
	return nil
}

// largest returns the person with the most sessions, including the new one of newcomer; among
// equals, the one with the idlest session.
func (l *SessionLimiter[S]) largest(newcomer *personSessions) (largest *personSessions) {
	most := 0
	for _, owner := range l.people {
		size := owner.size()
		if owner == newcomer {
			size++
		}
		if size > most || size == most && l.idlest(owner).idlerThan(l.idlest(largest)) {
			largest, most = owner, size
		}
	}
	return largest
}

// idlest returns the person's session to evict first.
func (l *SessionLimiter[S]) idlest(owner *personSessions) *limitedSession[S] {
	first := owner.idle.Front()
	if first == nil {
		first = owner.busy.Front()
	}
	return first.Value.(*limitedSession[S])
}

func (p *personSessions) size() int { return p.idle.Len() + p.busy.Len() }

// BeginCall records that a call begins in a session. BeginCall, EndCall and Remove ignore an
// unknown session.
func (l *SessionLimiter[S]) BeginCall(session S) { l.countCalls(session, 1) }

// EndCall records that a call has ended.
func (l *SessionLimiter[S]) EndCall(session S) { l.countCalls(session, -1) }

func (l *SessionLimiter[S]) countCalls(session S, change int) {
	s := l.sessions[session]
	if s == nil {
		return
	}
	s.unlist()
	s.calls += change
	l.use(s)
}

// use makes s the most recently used session.
func (l *SessionLimiter[S]) use(s *limitedSession[S]) {
	l.clock++
	s.lastUsed = l.clock
	s.element = s.list().PushBack(s)
}

// idlerThan reports whether s is evicted before other.
func (s *limitedSession[S]) idlerThan(other *limitedSession[S]) bool {
	if (s.calls == 0) != (other.calls == 0) {
		return s.calls == 0
	}
	return s.lastUsed < other.lastUsed
}

func (s *limitedSession[S]) list() *list.List {
	if s.calls > 0 {
		return &s.owner.busy
	}
	return &s.owner.idle
}

func (s *limitedSession[S]) unlist() { s.list().Remove(s.element) }

// Remove removes a session that has ended.
func (l *SessionLimiter[S]) Remove(session S) {
	s := l.sessions[session]
	if s == nil {
		return
	}
	delete(l.sessions, session)
	if s.unlist(); s.owner.size() == 0 {
		delete(l.people, s.owner.person)
	}
}
