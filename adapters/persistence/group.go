package persistence

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// mostAtOnce keeps a transaction short for whoever waits for the next one.
const mostAtOnce = 256

// group carries out writes that wait at the same moment in one transaction, with one flush of the disk for all: group commit. Nobody
// waits for company, so a lone write takes as long as by itself.
type group struct {
	writer *gorm.DB
	recent *recent
	yield  *yield

	crowded int // transactions for which nobody gives way; of whoever writes

	mu      sync.Mutex
	waiting []*member
	running bool
	resting chan struct{} // to whoever writes next, while nobody waits; nil at other times
}

// restLimit is the least that whoever writes stays for the next write, and half of the most: SQLite needs a deep stack, which would have to
// grow again.
const restLimit = time.Second

// member is one of these writes. It is refused alone.
type member struct {
	ctx      context.Context
	work     func(tx *changes) error
	turn     atomic.Bool // it has been taken or has left, whichever came first
	answered chan struct{}
	err      error
	panicked any
	broken   bool // the transaction, and not just this write
}

// changes is a transaction that notes what the guard has to read anew, and what it would read then.
type changes struct {
	*gorm.DB
	altered    []alteredGrant
	everything bool
	wrote      bool // a row
}

// alteredGrant is one that was written, with those of its secrets that were at hand.
type alteredGrant struct {
	id   string
	rows []*foundRow
}

// do waits for its turn no longer than patience, and then for what comes of it.
func (g *group) do(ctx context.Context, patience time.Duration, work func(tx *changes) error) error {
	m := &member{ctx: ctx, work: work, answered: make(chan struct{})}
	g.join(m)
	late := time.NewTimer(patience)
	defer late.Stop()
	var gaveUp error
	select {
	case <-m.answered:
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-late.C:
		gaveUp = context.DeadlineExceeded
	}
	if gaveUp != nil && m.turn.CompareAndSwap(false, true) {
		return failed("beginning a transaction", gaveUp)
	}
	<-m.answered
	if m.panicked != nil {
		panic(m.panicked)
	}
	return m.err
}

func (g *group) join(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, m)
	switch {
	case g.resting != nil:
		close(g.resting)
		g.resting = nil
	case !g.running:
		g.running = true
		go g.run()
	}
}

// run goes on until nobody has come for a while.
func (g *group) run() {
	late := time.NewTicker(restLimit) // one for all rests: to set a timer wakes Go's scheduler
	defer late.Stop()
	several := false
	for waiting := g.queued(late.C); waiting > 0; waiting = g.queued(late.C) {
		g.giveWay(several)
		writing, err := g.begin()
		if err != nil { // those who came meanwhile have not had their wait
			refuse(g.take(waiting), failed("beginning a transaction", err))
			continue
		}
		writes := g.take(mostAtOnce)
		several = len(writes) > 1
		g.carryOut(writing, writes)
	}
}

func (g *group) length() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// queued returns how many wait, and rests before it says that nobody does.
func (g *group) queued(late <-chan time.Time) int {
	waiting, called := g.look()
	if waiting > 0 {
		return waiting
	}
	rest(called, late)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resting, g.running = nil, len(g.waiting) > 0
	return len(g.waiting)
}

// rest ends when called, or with the second tick from now on.
func rest(called <-chan struct{}, late <-chan time.Time) {
	select {
	case <-late: // from before
	default:
	}
	for range 2 {
		select {
		case <-called:
			return
		case <-late:
		}
	}
}

func (g *group) look() (waiting int, called <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.resting = make(chan struct{})
	}
	return len(g.waiting), g.resting
}

// take removes the first ones.
func (g *group) take(most int) []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	most = min(most, len(g.waiting))
	taken := slices.Clone(g.waiting[:most])
	g.waiting = slices.Delete(g.waiting, 0, most)
	return taken
}

// rejoin puts writes in front again: those of which nothing was kept, and those that have not had their turn.
func (g *group) rejoin(undone, waiting []*member) {
	for _, m := range undone {
		m.err, m.panicked, m.broken = nil, nil, false
		m.turn.Store(false)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.Concat(undone, waiting, g.waiting)
}

// refuse answers those who have not left.
func refuse(writes []*member, err error) {
	for _, m := range writes {
		if m.turn.CompareAndSwap(false, true) {
			m.err = err
			close(m.answered)
		}
	}
}

// carryOut does the writes in one transaction and answers them. One that is refused when it has written something, or that may have ended
// the transaction, is answered alone, and the others begin again: a savepoint for each would cost all of them more, because a rule refuses
// before anything is written.
func (g *group) carryOut(writing *writing, writes []*member) {
	session := gorm.Session{NewDB: true, Context: context.Background()} // with a context GORM makes a statement of its own, not the writer's
	made := &changes{DB: g.writer.Session(&session)}
	made.Statement.ConnPool = writing
	g.recent.begin()
	var done []*member
	for i, m := range writes {
		if !m.turn.CompareAndSwap(false, true) {
			continue
		}
		altered := len(made.altered)
		writing.wrote, writing.ended = false, nil
		m.run(made)
		if writing.ended != nil {
			m.broken, m.err = true, cmp.Or(m.err, failed("writing", writing.ended))
		}
		if m.isRefused() { // and so nothing of it stays
			made.altered = made.altered[:altered]
		}
		if m.broken || m.isRefused() && (len(writes) == 1 || writing.wrote) {
			m.err = errors.Join(m.err, failed("rolling back", writing.Rollback()))
			g.recent.settle(&changes{})
			close(m.answered)
			g.rejoin(done, writes[i+1:])
			return
		}
		done = append(done, m)
	}
	err := failed("committing", writing.Commit())
	made.everything = made.everything || err != nil
	g.recent.settle(made)
	answerAll(done, err)
}

// gone is refused also by whoever has begun, so that nothing is kept of which nobody is told.
func (m *member) gone() error { return failed("changing", m.ctx.Err()) }

func (m *member) isRefused() bool { return m.err != nil || m.panicked != nil }

// run keeps a panic for whoever waits.
func (m *member) run(tx *changes) {
	defer func() { m.panicked = recover() }()
	if m.err = m.gone(); m.err != nil {
		return
	}
	m.err = m.work(tx)
	m.broken = errors.Is(m.err, oauth.ErrUnavailable)
	if m.err == nil {
		m.err = m.gone()
	}
}

// answerAll answers them, those that were not refused with what became of them all.
func answerAll(writes []*member, err error) {
	for _, m := range writes {
		if !m.isRefused() {
			m.err = err
		}
		close(m.answered)
	}
}
