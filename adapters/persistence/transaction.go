package persistence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
	"github.com/pasteport/pasteport/domain/oauth"
)

// change runs work that writes with one statement. On a server the statement is a transaction of
// its own, and work runs again when another process has changed the row since work has read it.
// In a file work runs in a transaction, where nothing collides. A call waits for its turn no
// longer than lockTimeout.
func (s *Store) change(ctx context.Context, work func(tx *gorm.DB) error) error {
	if s.file != nil {
		return s.file.Write(ctx, s.lockTimeout, work)
	}
	ctx, done := s.detached(ctx)
	defer done()
	return s.retryCollisions(ctx, func() error { return work(s.writer.WithContext(ctx)) })
}

// transaction is change for work with several statements, which belong together.
func (s *Store) transaction(ctx context.Context, work func(tx *gorm.DB) error) error {
	return s.change(ctx, func(db *gorm.DB) error { return inTransaction(db, work) })
}

// longTransaction runs work once, for as long as it takes. Other processes cannot write to a file
// meanwhile; a server goes on.
func (s *Store) longTransaction(ctx context.Context, work func(tx *gorm.DB) error) error {
	if s.file != nil {
		return s.change(ctx, work)
	}
	return inTransaction(s.writer.WithContext(ctx), work)
}

const attempts = 16 // of a change that collides with others

// retryCollisions runs work again, after a random pause, when it collides with a change of another
// process.
func (s *Store) retryCollisions(ctx context.Context, work func() error) error {
	for attempt := 1; ; attempt++ {
		err := work()
		if !collides(err) {
			return err
		}
		s.collisions.Add(1)
		if attempt == attempts || ctx.Err() != nil {
			return fmt.Errorf("%w: %w", oauth.ErrUnavailable, err)
		}
		select { // so that the same changes do not collide again
		case <-time.After(rand.N(time.Duration(attempt) * time.Millisecond)):
		case <-ctx.Done():
		}
	}
}

// inTransaction runs work once in a transaction; in a file, change has begun it. The drivers of
// servers set READ COMMITTED, which is enough because every change checks the versions that it has
// read.
func inTransaction(db *gorm.DB, work func(tx *gorm.DB) error) (err error) {
	ended := db.Transaction(func(tx *gorm.DB) error {
		err = work(tx)
		return err
	})
	if err == nil { // work has not failed, so an error is that of BEGIN or COMMIT
		err = failed("beginning or committing a transaction", ended)
	}
	return err
}

// failed wraps an error with a description of the operation, and translates the driver's error to
// ErrNotFound, ErrDuplicate or ErrUnavailable.
func failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gorm.ErrRecordNotFound):
		err = oauth.ErrNotFound
	case isDuplicate(err):
		err = oauth.ErrDuplicate
	case slices.Contains(pgPrepared, drivers.Code(err)):
		err = fmt.Errorf("%w: %w: behind PgBouncer in transaction mode, add default_query_exec_mode=exec to the "+
			"address", oauth.ErrUnavailable, err)
	default:
		err = fmt.Errorf("%w: %w", oauth.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// detached lets short work finish after its caller has canceled it. Otherwise a server's driver
// would drop the connection, and the driver of a file would start a goroutine for each statement.
// On a server, a deadline still holds.
func (s *Store) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.file != nil {
		return context.WithoutCancel(ctx), func() {}
	}
	limit := time.Now().Add(s.lockTimeout)
	if deadline, has := ctx.Deadline(); has && deadline.Before(limit) {
		limit = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), limit)
}
