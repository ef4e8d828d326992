package oauth

// SessionLimiter bounds the open sessions of each person and of all people together. It never
// refuses a new session: at a limit it evicts the session that has been idle longest, of the same
// person or, when the total is reached, of the person with the most sessions. It evicts a session
// with running calls only if all sessions of that person have some. SessionLimiter is not safe for
// concurrent use.
type SessionLimiter[S comparable] struct {
	max, maxPerPerson int
	sessions          map[S]*limitedSession[S]
	people            map[string]sessionsOf[S]
	clock             uint64 // number of uses so far, which orders the sessions by their last use
}

// limitedSession is an open session.
type limitedSession[S comparable] struct {
	session  S
	person   string
	calls    int    // running
	lastUsed uint64 // when a call last began or ended, by SessionLimiter.clock
}

// sessionsOf are the sessions of a person.
type sessionsOf[S comparable] map[S]*limitedSession[S]

// NewSessionLimiter returns a limiter without sessions, with the limits MaxSessions and
// MaxSessionsPerPerson.
func NewSessionLimiter[S comparable](limits Limits) *SessionLimiter[S] {
	return &SessionLimiter[S]{
		max:          limits.MaxSessions,
		maxPerPerson: limits.MaxSessionsPerPerson,
		sessions:     map[S]*limitedSession[S]{},
		people:       map[string]sessionsOf[S]{},
	}
}

// Add adds a session, or uses one that it has. At a limit it removes another session, which the
// caller has to end.
func (l *SessionLimiter[S]) Add(session S, person string) (evicted S, evicts bool) {
	if known := l.sessions[session]; known != nil {
		l.use(known)
		return evicted, false
	}
	if victim := l.victim(person); victim != nil {
		evicted, evicts = victim.session, true
		l.Remove(evicted)
	}
	added := &limitedSession[S]{session: session, person: person}
	l.sessions[session] = added
	if l.people[person] == nil {
		l.people[person] = sessionsOf[S]{}
	}
	l.people[person][session] = added
	l.use(added)
	return evicted, evicts
}

// victim returns the session to evict for a new session of the person, nil below the limits.
func (l *SessionLimiter[S]) victim(person string) *limitedSession[S] {
	switch own := l.people[person]; {
	case len(own) >= l.maxPerPerson:
		return own.idlest()
	case len(l.sessions) >= l.max:
		return l.largest(person).idlest()
	}
	return nil
}

// largest returns the sessions of the person with the most, including the new one of newcomer;
// among equals, those of the one with the idlest session.
func (l *SessionLimiter[S]) largest(newcomer string) (largest sessionsOf[S]) {
	most := 0
	for person, sessions := range l.people {
		size := len(sessions)
		if person == newcomer {
			size++
		}
		if size > most || size == most && sessions.idlest().idlerThan(largest.idlest()) {
			largest, most = sessions, size
		}
	}
	return largest
}

// idlest returns the session to evict first.
func (s sessionsOf[S]) idlest() (idlest *limitedSession[S]) {
	for _, session := range s {
		if idlest == nil || session.idlerThan(idlest) {
			idlest = session
		}
	}
	return idlest
}

// idlerThan reports whether s is evicted before other.
func (s *limitedSession[S]) idlerThan(other *limitedSession[S]) bool {
	if (s.calls == 0) != (other.calls == 0) {
		return s.calls == 0
	}
	return s.lastUsed < other.lastUsed
}

// BeginCall records that a call begins in a session. BeginCall, EndCall and Remove ignore an
// unknown session.
func (l *SessionLimiter[S]) BeginCall(session S) { l.countCalls(session, 1) }

// EndCall records that a call has ended.
func (l *SessionLimiter[S]) EndCall(session S) { l.countCalls(session, -1) }

func (l *SessionLimiter[S]) countCalls(session S, change int) {
	if s := l.sessions[session]; s != nil {
		s.calls += change
		l.use(s)
	}
}

// use makes s the most recently used session.
func (l *SessionLimiter[S]) use(s *limitedSession[S]) {
	l.clock++
	s.lastUsed = l.clock
}

// Remove removes a session that has ended.
func (l *SessionLimiter[S]) Remove(session S) {
	s := l.sessions[session]
	if s == nil {
		return
	}
	delete(l.sessions, session)
	delete(l.people[s.person], session)
	if len(l.people[s.person]) == 0 {
		delete(l.people, s.person)
	}
}
