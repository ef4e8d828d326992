package persistence

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.WindowCounter = (*Store)(nil)

// counterRow is a window and its count.
type counterRow struct {
	Name   []byte `gorm:"primaryKey"`
	Taken  int
	EndsAt time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (counterRow) TableName() string { return "counters" }

// countAtOnce bounds the counting statements that run at the same time. They wait for each other's
// rows, and without a bound they would hold every connection meanwhile.
const countAtOnce = 4

// Counts implements oauth.WindowCounter.
func (s *Store) Counts(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	ctx, done := s.detached(ctx)
	defer done()
	names := make([][]byte, 0, len(windows))
	for _, w := range windows {
		names = append(names, w.Name[:])
	}
	var rows []counterRow
	if err := s.reader.WithContext(ctx).Find(&rows, "name IN ?", names).Error; err != nil {
		return nil, failed("reading windows", err)
	}
	counts := make([]oauth.WindowCount, len(windows))
	for _, row := range rows {
		i := slices.IndexFunc(windows, func(w oauth.Window) bool { return bytes.Equal(w.Name[:], row.Name) })
		counts[i] = windows[i].Current(oauth.WindowCount{Taken: row.Taken, Ends: row.EndsAt}, now)
	}
	return counts, nil
}

// Count implements oauth.WindowCounter. It locks the rows in the order of their names, so that two
// statements do not deadlock.
func (s *Store) Count(ctx context.Context, now time.Time, windows ...oauth.Window) error {
	ctx, done := s.detached(ctx)
	defer done()
	waiting, cancel := context.WithTimeout(ctx, s.lockTimeout)
	err := s.counting.Acquire(waiting, 1)
	cancel()
	if err != nil {
		return failed("waiting to count", err)
	}
	defer s.counting.Release(1)
	statement, values := s.countStatement(now, windows)
	count := func(db *gorm.DB) error { return failed("counting", db.Exec(statement, values...).Error) }
	if s.file != nil {
		return s.transaction(ctx, count)
	}
	return s.retryCollisions(ctx, func() error { return count(s.writer.WithContext(ctx)) })
}

func (s *Store) countStatement(now time.Time, windows []oauth.Window) (statement string, values []any) {
	sorted := slices.SortedFunc(slices.Values(windows), func(a, b oauth.Window) int {
		return bytes.Compare(a.Name[:], b.Name[:])
	})
	for _, w := range sorted {
		values = append(values, w.Name[:], now.Add(w.Length).UnixMilli())
	}
	// The row begins with 1 because GORM expands a slice that follows a parenthesis.
	rows := strings.TrimSuffix(strings.Repeat("(1, ?, ?), ", len(sorted)), ", ")
	over := []any{now.UnixMilli(), oauth.MaxClockDifference.Milliseconds()}
	return "INSERT INTO counters (taken, name, ends_at) VALUES " + rows + " " + s.engine.countAgain,
		slices.Concat(values, over, over)
}

// The clause of Count for rows that exist adds one, or opens a new window when the last one is
// over. MySQL assigns from left to right, so ends_at comes last.
const (
	countAgain = `ON CONFLICT (name) DO UPDATE SET
	taken = CASE WHEN counters.ends_at <= ? OR counters.ends_at > excluded.ends_at + ?
		THEN 1 ELSE counters.taken + 1 END,
	ends_at = CASE WHEN counters.ends_at <= ? OR counters.ends_at > excluded.ends_at + ?
		THEN excluded.ends_at ELSE counters.ends_at END`
	countAgainMySQL = `ON DUPLICATE KEY UPDATE
	taken = CASE WHEN ends_at <= ? OR ends_at > VALUES(ends_at) + ? THEN 1 ELSE taken + 1 END,
	ends_at = CASE WHEN ends_at <= ? OR ends_at > VALUES(ends_at) + ? THEN VALUES(ends_at) ELSE ends_at END`
)
