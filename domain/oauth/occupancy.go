package oauth

import (
	"container/list"
)

// Occupancy decides which session ends when a person, or all people together, have too many (G20). It never refuses a new session: the
// idlest session of the same person ends or, when all places are taken, the idlest session of the person with most sessions. A session with
// a call under way is in use; it ends only when all sessions of that person are in use. Occupancy is not safe for concurrent use.
type Occupancy[S comparable] struct {
	all, perPerson int
	places         map[S]*place[S]
	people         map[string]*holdings
	uses           uint64 // so far, to compare how long sessions have been idle
}

// place is an open session.
type place[S comparable] struct {
	session  S
	holdings *holdings
	calls    int    // under way
	used     uint64 // when a call last began or ended, in uses
	element  *list.Element
}

// holdings are the sessions of a person, those first that were used the longest ago.
type holdings struct {
	person      string
	idle, inUse list.List
}

// NewOccupancy returns an empty Occupancy that is bounded by MaxSessions and MaxSessionsPerPerson.
func NewOccupancy[S comparable](limits Limits) *Occupancy[S] {
	return &Occupancy[S]{all: limits.MaxSessions, perPerson: limits.MaxSessionsPerPerson, places: map[S]*place[S]{}, people: map[string]*holdings{}}
}

// Open gives a session a place. It returns the session that the caller has to end, if any.
func (o *Occupancy[S]) Open(session S, person string) (evicted S, evicts bool) {
	if victim := o.victim(person); victim != nil {
		evicted, evicts = victim.session, true
		o.Close(evicted)
	}
	own := o.people[person]
	if own == nil {
		own = &holdings{person: person}
		o.people[person] = own
	}
	p := &place[S]{session: session, holdings: own}
	o.places[session] = p
	o.rank(p)
	return evicted, evicts
}

// victim returns the place that a new session of the person takes over, nil when there is a free one.
func (o *Occupancy[S]) victim(person string) *place[S] {
	own := o.people[person]
	switch {
	case own != nil && own.size() >= o.perPerson:
		return o.idlest(own)
	case len(o.places) >= o.all:
		return o.idlest(o.heaviest(own))
	}
	return nil
}

// heaviest returns the holdings with most sessions, counting the new one of newcomer; among equals, those with the idlest session.
func (o *Occupancy[S]) heaviest(newcomer *holdings) (heaviest *holdings) {
	most := 0
	for _, held := range o.people {
		size := held.size()
		if held == newcomer {
			size++
		}
		if size > most || size == most && o.idler(o.idlest(held), o.idlest(heaviest)) {
			heaviest, most = held, size
		}
	}
	return heaviest
}

// idler reports whether a ends before b.
func (o *Occupancy[S]) idler(a, b *place[S]) bool {
	if (a.calls == 0) != (b.calls == 0) {
		return a.calls == 0
	}
	return a.used < b.used
}

func (o *Occupancy[S]) idlest(held *holdings) *place[S] {
	first := held.idle.Front()
	if first == nil {
		first = held.inUse.Front()
	}
	return first.Value.(*place[S])
}

func (h *holdings) size() int { return h.idle.Len() + h.inUse.Len() }

// Begin records that a call begins in a session. Begin, End and Close ignore a session without a place.
func (o *Occupancy[S]) Begin(session S) { o.use(session, 1) }

// End records that a call has ended.
func (o *Occupancy[S]) End(session S) { o.use(session, -1) }

func (o *Occupancy[S]) use(session S, calls int) {
	p := o.places[session]
	if p == nil {
		return
	}
	p.leave()
	p.calls += calls
	o.rank(p)
}

// rank makes p the session that was used last.
func (o *Occupancy[S]) rank(p *place[S]) {
	o.uses++
	p.used = o.uses
	p.element = p.queue().PushBack(p)
}

func (p *place[S]) leave() { p.queue().Remove(p.element) }

func (p *place[S]) queue() *list.List {
	if p.calls > 0 {
		return &p.holdings.inUse
	}
	return &p.holdings.idle
}

// Close frees the place of a session.
func (o *Occupancy[S]) Close(session S) {
	p := o.places[session]
	if p == nil {
		return
	}
	delete(o.places, session)
	if p.leave(); p.holdings.size() == 0 {
		delete(o.people, p.holdings.person)
	}
}
