package quota

// OpenSessions bounds the open sessions of each person and of all people together. It never refuses
// a new session: at a limit it evicts the session that has been idle longest, of the same person
// or, if only the total is reached, of the person with the most sessions. It evicts a session with
// running calls only if all sessions of that person have some. It is not safe for concurrent use.
type OpenSessions[S comparable] struct {
	max, maxPerPerson int
	sessions          map[S]*limited[S]
	people            map[string]int // the number of sessions of each person
	clock             uint64         // number of uses so far, which orders the sessions by their last use
}

// limited is an open session.
type limited[S comparable] struct {
	session  S
	person   string
	calls    int    // running
	lastUsed uint64 // when a call last began or ended, by OpenSessions.clock
}

// NewOpenSessions returns a limiter without sessions.
func NewOpenSessions[S comparable](most, mostPerPerson int) *OpenSessions[S] {
	return &OpenSessions[S]{
		max:          most,
		maxPerPerson: mostPerPerson,
		sessions:     map[S]*limited[S]{},
		people:       map[string]int{},
	}
}

// Add adds a session, or records a use of one that it already has. At a limit it removes another
// session, which the caller has to end.
func (l *OpenSessions[S]) Add(session S, person string) (evicted S, evicts bool) {
	if known := l.sessions[session]; known != nil {
		l.use(known)
		return evicted, false
	}
	if victim := l.victim(person); victim != nil {
		evicted, evicts = victim.session, true
		l.Remove(evicted)
	}
	added := &limited[S]{session: session, person: person}
	l.sessions[session] = added
	l.people[person]++
	l.use(added)
	return evicted, evicts
}

// victim returns the session to evict for a new session of the person, nil below the limits. It is
// the idlest one of the person at their limit, and otherwise of the people with the most sessions.
func (l *OpenSessions[S]) victim(person string) (victim *limited[S]) {
	atOwnLimit := l.people[person] >= l.maxPerPerson
	if !atOwnLimit && len(l.sessions) < l.max {
		return nil
	}
	most := 0
	for _, s := range l.sessions {
		if atOwnLimit && s.person != person {
			continue
		}
		size := l.people[s.person]
		if s.person == person {
			size++ // with the new one
		}
		if size > most || size == most && s.idlerThan(victim) {
			victim, most = s, size
		}
	}
	return victim
}

// idlerThan reports whether s is evicted before other.
func (s *limited[S]) idlerThan(other *limited[S]) bool {
	if (s.calls == 0) != (other.calls == 0) {
		return s.calls == 0
	}
	return s.lastUsed < other.lastUsed
}

// BeginCall records that a call begins in a session. BeginCall, EndCall and Remove ignore an
// unknown session.
func (l *OpenSessions[S]) BeginCall(session S) { l.countCalls(session, 1) }

// EndCall records that a call has ended.
func (l *OpenSessions[S]) EndCall(session S) { l.countCalls(session, -1) }

func (l *OpenSessions[S]) countCalls(session S, change int) {
	if s := l.sessions[session]; s != nil {
		s.calls += change
		l.use(s)
	}
}

// use makes s the most recently used session.
func (l *OpenSessions[S]) use(s *limited[S]) {
	l.clock++
	s.lastUsed = l.clock
}

// Remove removes a session that has ended.
func (l *OpenSessions[S]) Remove(session S) {
	s := l.sessions[session]
	if s == nil {
		return
	}
	delete(l.sessions, session)
	if l.people[s.person]--; l.people[s.person] == 0 {
		delete(l.people, s.person)
	}
}
