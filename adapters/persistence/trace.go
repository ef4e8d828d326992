package persistence

import (
	"context"
	"database/sql"
	"hash/maphash"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/trace"
)

// stepRow is a trace.Step with tags.
type stepRow struct {
	Number  int64     `gorm:"primaryKey;autoIncrement"`
	At      time.Time `gorm:"serializer:pasteport_millis"`
	Kind    trace.Kind
	Outcome trace.Outcome
	Attempt string
	Request string
	Client  string
	Address string
	Agent   string
	Rule    string
	Reason  string
}

// stepLayout is without the number, which follows.
var stepLayout = &layout[stepRow]{name: stepRow{}.TableName(), columns: []column[stepRow]{
	{"at", func(s *stepRow) any { return (*moment)(&s.At) }},
	{"kind", func(s *stepRow) any { return (*string)(&s.Kind) }},
	{"outcome", func(s *stepRow) any { return (*string)(&s.Outcome) }},
	{"attempt", func(s *stepRow) any { return &s.Attempt }},
	{"request", func(s *stepRow) any { return &s.Request }},
	{"client", func(s *stepRow) any { return &s.Client }},
	{"address", func(s *stepRow) any { return &s.Address }},
	{"agent", func(s *stepRow) any { return &s.Agent }},
	{"rule", func(s *stepRow) any { return &s.Rule }},
	{"reason", func(s *stepRow) any { return &s.Reason }},
}}

// TableName implements GORM's Tabler.
func (stepRow) TableName() string { return "trace_steps" }

var _ trace.Log = (*Store)(nil)

// How many steps are in one statement: on a server as many as come, and in a file some, because each number is another statement to prepare.
const (
	stepsAtOnce       = 200
	stepsAtOnceInFile = 10
)

// AddSteps implements trace.Log.
func (s *Store) AddSteps(ctx context.Context, steps []trace.Step) error {
	rows := make([]*stepRow, 0, len(steps))
	for _, step := range steps {
		row := stepRow(step)
		rows = append(rows, &row)
	}
	return s.change(ctx, func(tx *changes) error {
		for left := rows; len(left) > 0; {
			some := s.engine.stepsAtOnce(len(left))
			if err := stepLayout.insert(tx, left[:some]...); err != nil {
				return failed("adding to the trace", err)
			}
			left = left[some:]
		}
		return nil
	})
}

func (e engine) stepsAtOnce(left int) int {
	switch {
	case e.server:
		return min(left, stepsAtOnce)
	case left < stepsAtOnceInFile:
		return 1
	}
	return stepsAtOnceInFile
}

// Steps implements trace.Log.
func (s *Store) Steps(ctx context.Context, after int64) ([]trace.Step, error) {
	var rows []stepRow
	ctx, done := s.detached(ctx)
	defer done()
	err := s.reader.WithContext(ctx).Order("number").Find(&rows, "number > ?", after).Error
	steps := make([]trace.Step, 0, len(rows))
	for _, row := range rows {
		steps = append(steps, trace.Step(row))
	}
	return steps, failed("reading the trace", err)
}

const (
	oldSteps     = `SELECT number FROM trace_steps WHERE at < ? ORDER BY number DESC LIMIT ?`
	provingSteps = `SELECT attempt FROM trace_steps WHERE attempt <> '' AND kind NOT IN ?`
	newestSteps  = `SELECT number, attempt FROM trace_steps ORDER BY number DESC LIMIT ?`
	mostSteps    = 100_000 // to forget at once for their age; of those that are too many at least as many are looked at
	forgetsSteps = 500     // in one transaction, so that others may write between two
)

// ForgetSteps implements trace.Log. What is gone stays gone when the time is over before all is.
func (s *Store) ForgetSteps(ctx context.Context, before time.Time, keep int) (deleted int, err error) {
	numbers, err := s.oldSteps(ctx, before)
	if err == nil {
		deleted, err = s.forgetSteps(ctx, numbers)
	}
	if err != nil {
		return deleted, failed("forgetting what is old in the trace", err)
	}
	if numbers, err = s.stepsBeyond(ctx, keep); err != nil {
		return deleted, failed("counting the trace", err)
	}
	gone, err := s.forgetSteps(ctx, numbers)
	return deleted + gone, failed("forgetting the trace", err)
}

func (s *Store) oldSteps(ctx context.Context, before time.Time) (numbers []int64, err error) {
	ctx, done := s.detached(ctx)
	defer done()
	err = s.reader.WithContext(ctx).Raw(oldSteps, before.UnixMilli(), mostSteps).Scan(&numbers).Error
	return numbers, err
}

// stepsBeyond are those that are too many, of attempts that came to a grant and of the others, so that strangers who knock cannot push out
// what belongs to a grant. The others come first: a step without its proof is one of theirs, should there be no time for all.
func (s *Store) stepsBeyond(ctx context.Context, keep int) ([]int64, error) {
	proven, err := s.provenAttempts(ctx)
	if err != nil {
		return nil, err
	}
	ctx, done := s.detached(ctx)
	defer done()
	var (
		number  int64
		attempt sql.RawBytes
		others  = side{keep: keep}
		granted = side{keep: keep}
	)
	err = eachRow(s.reader.WithContext(ctx).Raw(newestSteps, 2*keep+mostSteps), func() {
		if proven.has(attempt) {
			granted.add(number)
		} else {
			others.add(number)
		}
	}, &number, &attempt)
	return append(others.beyond, granted.beyond...), err
}

// side are steps that are counted together, the newest first.
type side struct {
	keep, size int
	beyond     []int64 // the numbers of those that are too many
}

func (s *side) add(number int64) {
	if s.size++; s.size > s.keep {
		s.beyond = append(s.beyond, number)
	}
}

// attemptHashes stand for attempts: a table of them in the database would take many times the memory. When two have the same hash, which
// nobody can bring about, a stranger's steps count as somebody's.
type attemptHashes struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func (h attemptHashes) has(attempt []byte) bool {
	_, known := h.hashes[maphash.Bytes(h.seed, attempt)]
	return known
}

// provenAttempts are those with a step that is not trace.Unproven.
func (s *Store) provenAttempts(ctx context.Context) (attemptHashes, error) {
	ctx, done := s.detached(ctx)
	defer done()
	proven := attemptHashes{maphash.MakeSeed(), map[uint64]struct{}{}}
	var attempt sql.RawBytes
	err := eachRow(s.reader.WithContext(ctx).Raw(provingSteps, trace.Unproven), func() {
		proven.hashes[maphash.Bytes(proven.seed, attempt)] = struct{}{}
	}, &attempt)
	return proven, err
}

// eachRow reads a row after the other to the same places.
func eachRow(question *gorm.DB, take func(), into ...any) error {
	rows, err := question.Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		take()
	}
	return rows.Err()
}

func (s *Store) forgetSteps(ctx context.Context, numbers []int64) (deleted int, err error) {
	for batch := range slices.Chunk(numbers, forgetsSteps) {
		var gone int64
		err := s.transaction(ctx, func(tx *gorm.DB) error {
			done := tx.Exec("DELETE FROM trace_steps WHERE number IN ?", batch)
			gone = done.RowsAffected
			return done.Error
		})
		if err != nil {
			return deleted, err
		}
		deleted += int(gone)
	}
	return deleted, nil
}
