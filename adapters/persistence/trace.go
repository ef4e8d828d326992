package persistence

import (
	"context"
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

// What goes, the newest first: steps that are too old, and those of attempts that came to a grant and of the others beyond what each side
// keeps, so that strangers who knock cannot push out what belongs to a grant. The join takes time in proportion to the trace on every
// engine, also when all steps are of one attempt: MariaDB makes an index of its own for names of a bounded length, which an id has, and for
// nothing that a DELETE asks.
const (
	oldSteps    = `SELECT number FROM trace_steps WHERE at < @before ORDER BY number DESC LIMIT @most`
	provenSteps = judgedSteps + `WHERE name IS NOT NULL ORDER BY number DESC LIMIT @most OFFSET @keep`
	othersSteps = judgedSteps + `WHERE name IS NULL ORDER BY number DESC LIMIT @most OFFSET @keep`
	judgedSteps = `SELECT number FROM trace_steps LEFT JOIN (SELECT DISTINCT CAST(attempt AS CHAR(64)) AS name FROM trace_steps
		WHERE attempt <> '' AND kind NOT IN @unproven) AS proven ON name = CAST(attempt AS CHAR(64)) `
	mostSteps    = 100_000 // to forget at once
	forgetsSteps = 500     // in one transaction, so that others may write between two
)

// ForgetSteps implements trace.Log. What is gone stays gone when the time is over before all is.
func (s *Store) ForgetSteps(ctx context.Context, before time.Time, keep int) (deleted int, err error) {
	chosen := map[string]any{"before": before.UnixMilli(), "unproven": trace.Unproven, "keep": keep, "most": mostSteps}
	for _, those := range []string{oldSteps, othersSteps, provenSteps} { // in this order, because without its proof a step changes sides
		gone, err := s.forgetSteps(ctx, those, chosen)
		deleted += gone
		if err != nil {
			return deleted, failed("forgetting the trace", err)
		}
	}
	return deleted, nil
}

func (s *Store) forgetSteps(ctx context.Context, those string, chosen map[string]any) (deleted int, err error) {
	numbers, err := s.stepNumbers(ctx, those, chosen)
	if err != nil {
		return 0, err
	}
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

func (s *Store) stepNumbers(ctx context.Context, those string, chosen map[string]any) (numbers []int64, err error) {
	ctx, done := s.detached(ctx)
	defer done()
	err = s.reader.WithContext(ctx).Raw(those, chosen).Scan(&numbers).Error
	return numbers, err
}
