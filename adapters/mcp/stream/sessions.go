package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// Session is a session of an MCP server in this process, or of a program.
type Session interface {
	ID() string
	// End ends the session. It may wait for the calls of the session.
	End(cause error)
}

// ErrIdle is the cause of the end of a session that no client has used for Options.IdleTimeout.
var ErrIdle = errors.New("the session was idle for too long")

// openSession is a session of the registry.
type openSession struct {
	grants   map[string]bool // that have used it and have not ended
	session  Session
	closing  bool
	requests int         // under way, also streams on which a client listens
	calls    int         // without an answer, perhaps of clients that have gone
	idle     *time.Timer // ends the session
	expires  time.Time   // when idle is due
}

// end ends the session in the background, because that may wait for its calls.
func (s *openSession) end(cause error) {
	if !s.closing {
		s.closing = true
		go s.session.End(cause)
	}
}

// wait restarts the timer of a session that no request uses.
func (s *openSession) wait(timeout time.Duration) {
	if timeout == 0 || s.requests > 0 {
		s.idle.Stop()
		return
	}
	if s.calls > 0 { // a client may resume the response, but some servers never answer
		timeout = max(timeout, time.Hour)
	}
	s.expires = time.Now().Add(timeout)
	s.idle.Reset(timeout)
}

// recentSessions are the ids of sessions that have ended, the last ones.
type recentSessions []string

const maxRecent = 1000

func (r *recentSessions) add(id string) {
	*r = append(*r, id)
	*r = (*r)[max(0, len(*r)-maxRecent):]
}

// IsDraining reports whether Drain was called.
func (r *Registry) IsDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// AddSession registers a session, and returns false if it may not be opened. Beyond the limits it
// ends the session that has been idle longest.
// It ignores a session without an id, which ends with its request.
func (r *Registry) AddSession(session Session, caller *oauth.Caller) (added bool) {
	evicted, added := r.admit(session, caller)
	if evicted != nil {
		r.reportEviction("session", r.options.Limits, slices.Sorted(maps.Keys(evicted.grants)))
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
	_, ended := r.ended[caller.Grant]
	if r.draining || ended && !caller.IsDirect() || slices.Contains(r.evicted, id) {
		return nil, false
	}
	if other, evicts := r.limiter.Add(id, caller.Subject); evicts {
		evicted = r.sessions[other]
		delete(r.sessions, other)
		r.evicted.add(other)
		evicted.idle.Stop()
		evicted.end(fmt.Errorf(
			"a newer session has replaced it, because the limit of sessions is %d for each person and %d for all",
			r.options.Limits.MaxSessionsPerPerson, r.options.Limits.MaxSessions))
	}
	opened := &openSession{grants: map[string]bool{caller.Grant: true}, session: session}
	opened.idle = time.AfterFunc(time.Hour, func() { // wait sets the time
		r.mu.Lock()
		defer r.mu.Unlock()
		// Its timer may have been restarted in the meantime.
		if opened.requests == 0 && !time.Now().Before(opened.expires) {
			opened.end(ErrIdle)
		}
	})
	opened.wait(r.options.IdleTimeout)
	r.sessions[id] = opened
	return evicted, true
}

// Attend records that a request uses a session until leave is called. Meanwhile, the session is not
// idle, but it may be evicted for a newer one.
func (r *Registry) Attend(session string) (leave func()) {
	r.change(session, func(s *openSession) { s.requests++ })
	return func() { r.change(session, func(s *openSession) { s.requests-- }) }
}

// change changes a session, and restarts its timer. It ignores an unknown session.
func (r *Registry) change(session string, change func(s *openSession)) {
	if session == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[session]; s != nil {
		change(s)
		s.wait(r.options.IdleTimeout)
	}
}

// reportEviction counts and logs the eviction of a session or stream.
func (r *Registry) reportEviction(what string, limits oauth.Limits, grants []string) {
	r.options.Limited.Observe(quota.Sessions, quota.Evicted)
	r.options.Logger.Info("the idlest MCP "+what+" ended for a new one", "rule", "G20",
		"limit_per_person", limits.MaxSessionsPerPerson, "limit", limits.MaxSessions,
		"grant", strings.Join(grants, " "))
}

// UseSession records that a grant of the same owner uses a session, as after a step-up: the session
// ends with the last of its grants. It returns false if the session is closing.
func (r *Registry) UseSession(id, grant string) (usable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	session, known := r.sessions[id]
	if !known {
		return !slices.Contains(r.closed, id) // the handler of the SDK may still know it for a moment
	}
	if _, ended := r.ended[grant]; !ended {
		session.grants[grant] = true
	}
	return !session.closing
}

// Session returns a session that AddSession has added, nil for none.
func (r *Registry) Session(id string) Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	if session := r.sessions[id]; session != nil {
		return session.session
	}
	return nil
}

// BeginCall marks a session as busy until EndCall. It is evicted after all others, and is idle only
// after an hour.
func (r *Registry) BeginCall(session string) {
	r.change(session, func(s *openSession) {
		s.calls++
		r.limiter.BeginCall(session)
	})
}

// EndCall ends what BeginCall began.
func (r *Registry) EndCall(session string) {
	r.change(session, func(s *openSession) {
		s.calls--
		r.limiter.EndCall(session)
	})
}

// RemoveSession removes a session that has ended.
func (r *Registry) RemoveSession(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if session, known := r.sessions[id]; known {
		session.idle.Stop()
		if session.closing {
			r.closed.add(id)
		}
	}
	delete(r.sessions, id)
	r.limiter.Remove(id)
}

// WasEvicted reports whether a session was evicted recently.
func (r *Registry) WasEvicted(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.sessions[id]
	return !known && slices.Contains(r.evicted, id)
}
