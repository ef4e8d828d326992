package persistence

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/domain/attempt"
)

// attemptRow is an attempt.Attempt with tags.
type attemptRow struct {
	ID       string `gorm:"primaryKey"`
	Client   string
	Agent    string
	Address  string
	Begun    time.Time `gorm:"serializer:pasteport_millis"`
	At       time.Time `gorm:"serializer:pasteport_millis"`
	Progress attempt.Progress
	Last     attempt.Step   `gorm:"column:last_step;serializer:json"`
	Steps    []attempt.Step `gorm:"serializer:json"`
}

func (attemptRow) TableName() string { return "attempts" }

var _ attempt.Log = (*Store)(nil)

// ChangeAttempts implements attempt.Log.
func (s *Store) ChangeAttempts(ctx context.Context, ids []string,
	change func([]attempt.Attempt) []attempt.Attempt) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		var rows []attemptRow
		locked := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Order("id")
		if err := locked.Find(&rows, "id IN ?", ids).Error; err != nil {
			return failed("reading the trace", err)
		}
		var changed []attemptRow
		for _, one := range change(attemptsIn(rows)) {
			changed = append(changed, attemptRow(one))
		}
		if len(changed) == 0 {
			return nil
		}
		return failed("adding to the trace", tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&changed).Error)
	})
}

func attemptsIn(rows []attemptRow) []attempt.Attempt {
	attempts := make([]attempt.Attempt, 0, len(rows))
	for _, row := range rows {
		attempts = append(attempts, attempt.Attempt(row))
	}
	return attempts
}

// Attempts implements attempt.Log.
func (s *Store) Attempts(ctx context.Context, since time.Time) ([]attempt.Attempt, error) {
	var rows []attemptRow
	ctx, done := s.detached(ctx)
	defer done()
	err := s.reader.WithContext(ctx).Order("at DESC, id").Find(&rows, "at >= ?", since.UnixMilli()).Error
	return attemptsIn(rows), failed("reading the trace", err)
}

// ForgetAttempts implements attempt.Log.
func (s *Store) ForgetAttempts(ctx context.Context, before time.Time, keep int) (deleted int, err error) {
	for _, group := range []string{"progress = 0", "progress > 0"} {
		var forgotten int64
		err := s.transaction(ctx, func(tx *gorm.DB) error {
			oldest := before.UnixMilli()
			var surplus []int64 // when the newest attempt beyond keep was; empty without one
			next := tx.Model(&attemptRow{}).Where(group).Order("at DESC").Offset(keep).Limit(1)
			if err := next.Pluck("at", &surplus).Error; err != nil {
				return failed("counting the trace", err)
			}
			for _, at := range surplus {
				oldest = max(oldest, at+1)
			}
			gone := tx.Where(group).Delete(&attemptRow{}, "at < ?", oldest)
			forgotten = gone.RowsAffected
			return failed("forgetting the trace", gone.Error)
		})
		if err != nil {
			return deleted, err
		}
		deleted += int(forgotten)
	}
	return deleted, nil
}
