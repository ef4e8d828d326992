package persistence

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/connection"
)

// stepRow is a connection.Step with tags.
type stepRow struct {
	Number  int64     `gorm:"primaryKey;autoIncrement"`
	At      time.Time `gorm:"serializer:pasteport_millis"`
	Kind    connection.Kind
	Outcome connection.Outcome
	Attempt string
	Request string
	Client  string
	Address string
	Agent   string
	Rule    string
	Reason  string
}

// TableName implements GORM's Tabler.
func (stepRow) TableName() string { return "trace_steps" }

var _ connection.Log = (*Store)(nil)

// stepsAtOnce is the number of steps in one INSERT.
const stepsAtOnce = 200

// AddSteps implements connection.Log.
func (s *Store) AddSteps(ctx context.Context, steps []connection.Step) error {
	for some := range slices.Chunk(steps, stepsAtOnce) {
		err := s.change(ctx, func(tx *gorm.DB) error {
			rows := make([]stepRow, 0, len(some))
			for _, step := range some {
				rows = append(rows, stepRow(step))
			}
			return failed("adding to the trace", tx.Create(&rows).Error)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Steps implements connection.Log.
func (s *Store) Steps(ctx context.Context, after int64) ([]connection.Step, error) {
	var rows []stepRow
	ctx, done := s.detached(ctx)
	defer done()
	err := s.reader.WithContext(ctx).Order("number").Find(&rows, "number > ?", after).Error
	steps := make([]connection.Step, 0, len(rows))
	for _, row := range rows {
		steps = append(steps, connection.Step(row))
	}
	return steps, failed("reading the trace", err)
}

const (
	oldSteps     = `SELECT number FROM trace_steps WHERE at < ? ORDER BY number DESC LIMIT ?`
	provingSteps = `SELECT attempt FROM trace_steps WHERE kind NOT IN ?`
	newestSteps  = `SELECT number, attempt FROM trace_steps ORDER BY number DESC LIMIT ?`
	mostSteps    = 100_000 // deleted for their age in one call; the search for excess steps reads at least as many
	forgetsSteps = 500     // deleted in one transaction, so that others may write between two
)

// ForgetSteps implements connection.Log. When ctx ends early, the deleted steps stay deleted.
func (s *Store) ForgetSteps(ctx context.Context, before time.Time, keep int) (deleted int, err error) {
	return s.forgetStepsOf(ctx, before, keep, mostSteps)
}

func (s *Store) forgetStepsOf(ctx context.Context, before time.Time, keep, most int) (deleted int, err error) {
	numbers, err := s.oldSteps(ctx, before, most)
	if err == nil {
		deleted, err = s.forgetSteps(ctx, numbers)
	}
	if err != nil {
		return deleted, failed("forgetting what is old in the trace", err)
	}
	if numbers, err = s.exceedingSteps(ctx, keep, most); err != nil {
		return deleted, failed("counting the trace", err)
	}
	gone, err := s.forgetSteps(ctx, numbers)
	return deleted + gone, failed("forgetting the trace", err)
}

func (s *Store) oldSteps(ctx context.Context, before time.Time, most int) (numbers []int64, err error) {
	ctx, done := s.detached(ctx)
	defer done()
	err = s.reader.WithContext(ctx).Raw(oldSteps, before.UnixMilli(), most).Scan(&numbers).Error
	return numbers, err
}

// exceedingSteps returns the steps beyond keep among the newest; the next call reaches the older
// ones.
func (s *Store) exceedingSteps(ctx context.Context, keep, most int) ([]int64, error) {
	steps, attempt := retention{keep: keep, proven: map[uint64]struct{}{}}, sql.RawBytes{}
	err := s.eachRow(ctx, func() { steps.prove(attempt) }, []any{&attempt}, provingSteps, connection.Unproven)
	if err != nil {
		return nil, err
	}
	var number int64
	err = s.eachRow(ctx, func() {
		steps.count(number, attempt)
	}, []any{&number, &attempt}, newestSteps, 2*keep+most)
	return steps.exceeding(), err
}

// eachRow scans each row of a query into the same variables and calls take.
func (s *Store) eachRow(ctx context.Context, take func(), into []any, query string, values ...any) error {
	ctx, done := s.detached(ctx)
	defer done()
	rows, err := s.reader.WithContext(ctx).Raw(query, values...).Rows()
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
