package persistence

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.WindowCounter = (*Store)(nil)

// clocksApart is how much the clocks of replicas may differ: a window that lasts longer than it may by more was opened while a clock
// was ahead by years.
const clocksApart = 10 * time.Second

// counterRow is a window that somebody has counted on.
type counterRow struct {
	Name   []byte `gorm:"primaryKey"`
	Taken  int
	EndsAt time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (counterRow) TableName() string { return "counters" }

// countAtOnce is how many of a process count at the same moment. They wait for each other anyway, on the window that is everybody's, and
// would do so on all connections, while others want to know whether a token holds.
const countAtOnce = 4

// turns lets no more than countAtOnce count; its zero value is ready.
type turns struct {
	made sync.Once
	free chan struct{}
}

// take waits for a turn and returns what ends it.
func (t *turns) take(ctx context.Context, patience time.Duration) (end func(), err error) {
	t.made.Do(func() { t.free = make(chan struct{}, countAtOnce) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free }, nil
	case <-ctx.Done():
		return nil, failed("waiting to count", ctx.Err())
	}
}

var errFull = errors.New("the window is full")

// Take implements oauth.WindowCounter. A full window is only read, so that whoever goes on guessing costs little.
func (s *Store) Take(ctx context.Context, now time.Time, windows ...oauth.Window) (wait time.Duration, err error) {
	ctx, done := s.detached(ctx)
	defer done()
	end, err := s.counting.take(ctx, s.patience)
	if err != nil {
		return 0, err
	}
	defer end()
	windows = inOrder(windows)
	if wait, err = s.fullFor(ctx, now, windows); wait > 0 || err != nil {
		return wait, err
	}
	err = s.transaction(ctx, func(tx *gorm.DB) error {
		rows, err := s.lockCounters(tx, windows)
		if err != nil {
			return err
		}
		wait = longest(rows, windows, now)
		if wait > 0 {
			return errFull
		}
		for i := range rows {
			rows[i].Taken++
			if err := tx.Select("*").Updates(&rows[i]).Error; err != nil {
				return failed("counting", err)
			}
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return wait, nil
	}
	return 0, err
}

// fullFor looks without a lock: a window that is full stays so until it is over, unless a guess is given back.
func (s *Store) fullFor(ctx context.Context, now time.Time, windows []oauth.Window) (time.Duration, error) {
	var known []counterRow
	err := s.reader.WithContext(ctx).Find(&known, "name IN ?", names(windows)).Error
	if err != nil {
		return 0, failed("looking at windows", err)
	}
	rows := make([]counterRow, len(windows))
	for _, row := range known {
		i := slices.IndexFunc(windows, func(w oauth.Window) bool { return bytes.Equal(w.Name[:], row.Name) })
		rows[i] = row
	}
	return longest(rows, windows, now), nil
}

// longest is how long the full ones of these windows still last.
func longest(rows []counterRow, windows []oauth.Window, now time.Time) (wait time.Duration) {
	for i := range rows {
		wait = max(wait, rows[i].wait(windows[i], now))
	}
	return wait
}

func names(windows []oauth.Window) [][]byte {
	names := make([][]byte, 0, len(windows))
	for _, w := range windows {
		names = append(names, w.Name[:])
	}
	return names
}

// lockCounters makes the rows that are missing, and lets nobody else count on any of them before the end of the transaction.
func (s *Store) lockCounters(tx *gorm.DB, windows []oauth.Window) (rows []counterRow, err error) {
	missing := make([]counterRow, 0, len(windows))
	for _, w := range windows {
		missing = append(missing, counterRow{Name: w.Name[:], EndsAt: time.UnixMilli(0)})
	}
	if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&missing).Error; err != nil {
		return nil, failed("opening windows", err)
	}
	err = s.engine.locking(tx).Order("name").Find(&rows, "name IN ?", names(windows)).Error
	if err == nil && len(rows) != len(windows) {
		err = errOvertaken // by the sweep
	}
	return rows, failed("locking windows", err)
}

// wait opens a new window when the last one is over, and returns how long a full one still lasts.
func (c *counterRow) wait(w oauth.Window, now time.Time) time.Duration {
	if left := c.EndsAt.Sub(now); left <= 0 || left > w.Length+clocksApart {
		c.Taken, c.EndsAt = 0, now.Add(w.Length)
	}
	if c.Taken >= w.Limit {
		return c.EndsAt.Sub(now)
	}
	return 0
}

// GiveBack implements oauth.WindowCounter: a window that was opened later ends later. It is the same one when it was opened a moment later
// by somebody who got its lock first, or whose clock is ahead.
func (s *Store) GiveBack(ctx context.Context, taken time.Time, windows ...oauth.Window) error {
	ctx, done := s.detached(ctx)
	defer done()
	end, err := s.counting.take(ctx, s.patience)
	if err != nil {
		return err
	}
	defer end()
	return s.transaction(ctx, func(tx *gorm.DB) error {
		for _, w := range inOrder(windows) {
			err := tx.Exec("UPDATE counters SET taken = taken - 1 WHERE name = ? AND taken > 0 AND ends_at <= ?",
				w.Name[:], taken.Add(w.Length+clocksApart).UnixMilli()).Error
			if err != nil {
				return failed("giving back", err)
			}
		}
		return nil
	})
}

// inOrder keeps two who want the same windows from waiting for each other.
func inOrder(windows []oauth.Window) []oauth.Window {
	return slices.SortedFunc(slices.Values(windows), func(a, b oauth.Window) int { return bytes.Compare(a.Name[:], b.Name[:]) })
}
