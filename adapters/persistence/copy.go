package persistence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// CopyStep is how far a copy has come.
type CopyStep struct {
	Table     string
	Rows, Of  int64
	Comparing bool // all is copied, and this table is read back from both sides
}

// Copy makes the destination hold what the source does: grants, secrets, used assertions and the trace, and nothing that is of the
// moment. A SQLite source cannot be written meanwhile; a server that was written is noticed in the end. Everything is read back from
// both sides and compared. A copy that was interrupted is completed by another one; whatever else is in the destination is refused.
func Copy(ctx context.Context, from, to *Store, progress func(CopyStep)) error {
	if err := differ(ctx, from, to); err != nil {
		return err
	}
	known, err := fingerprints(to.reader.WithContext(ctx))
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return fmt.Errorf("a service has used the destination, or a copy to it was finished: %w", errNotEmpty)
	}
	return from.held(ctx, func(source *gorm.DB) error {
		c := &copying{source: source, target: to.writer.WithContext(ctx), progress: progress}
		return c.run(to.engine)
	})
}

var (
	errSame     = errors.New("the source and the destination are the same store: name two")
	errNotEmpty = errors.New("it has to be empty, or hold what an interrupted copy of the same source has left: drop and create the database, or delete the file, and start again")
)

// differ leaves a mark in one store that is looked for in the other, because one database has many addresses.
func differ(ctx context.Context, from, to *Store) error {
	mark := counterRow{Name: make([]byte, 32), EndsAt: time.UnixMilli(0)} // which the sweep takes away if we cannot
	_, _ = rand.Read(mark.Name)
	target := to.writer.WithContext(ctx)
	if err := target.Create(&mark).Error; err != nil {
		return failed("writing to the destination", err)
	}
	var seen int64
	err := from.reader.WithContext(ctx).Model(&counterRow{}).Where("name = ?", mark.Name).Count(&seen).Error
	err = errors.Join(failed("reading the source", err), failed("writing to the destination", target.Delete(&mark).Error))
	if err == nil && seen > 0 {
		return errSame
	}
	return err
}

// held keeps others from writing to a file; a server's load is not held up.
func (s *Store) held(ctx context.Context, work func(db *gorm.DB) error) error {
	if s.engine.server {
		return work(s.reader.WithContext(ctx))
	}
	return s.transaction(ctx, work)
}

type copying struct {
	source, target *gorm.DB
	progress       func(CopyStep)
}

// table is one that is copied.
type table struct {
	name      string
	strangers func(*copying) (int64, error)
	copy      func(*copying) (tally, error)
	tally     func(*gorm.DB) (tally, error)
}

func tableOf[R row]() table {
	return table{(*new(R)).TableName(), strangers[R], copyRows[R], tallyOf[R]}
}

// copied are in the order in which they refer to each other.
var copied = []table{tableOf[grantRow](), tableOf[secretRow](), tableOf[assertionRow](), tableOf[stepRow]()}

func (c *copying) run(into engine) error {
	for _, t := range copied {
		others, err := t.strangers(c)
		if err != nil {
			return fmt.Errorf("looking through %s of the destination: %w", t.name, err)
		}
		if others > 0 {
			return fmt.Errorf("%s of the destination has rows that the source does not have, %d of them: %w", t.name, others, errNotEmpty)
		}
	}
	tallies := make([]tally, len(copied))
	for i, t := range copied {
		var err error
		if tallies[i], err = t.copy(c); err != nil {
			return fmt.Errorf("copying %s: %w", t.name, err)
		}
	}
	if into.renumber != "" {
		if err := c.target.Exec(into.renumber).Error; err != nil {
			return failed("numbering the trace", err)
		}
	}
	for i, t := range copied {
		if err := c.compare(t, tallies[i]); err != nil {
			return err
		}
	}
	return nil
}

// strangers counts the rows of the destination that the source does not have.
func strangers[R row](c *copying) (others int64, err error) {
	column, _ := (*new(R)).key()
	err = batches(c.target, func(rows []R) error {
		keys := make([]any, len(rows))
		for i, r := range rows {
			_, keys[i] = r.key()
		}
		var both int64
		err := c.source.Model(new(R)).Where(column+" IN ?", keys).Count(&both).Error
		others += int64(len(rows)) - both
		return err
	})
	return others, err
}

// copyRows writes what is there already once more, so that it becomes as it is in the source.
func copyRows[R row](c *copying) (t tally, err error) {
	step := CopyStep{Table: (*new(R)).TableName()}
	if err := c.source.Model(new(R)).Count(&step.Of).Error; err != nil {
		return t, err
	}
	c.progress(step)
	err = batches(c.source, func(rows []R) error {
		for _, r := range rows {
			t.add(r)
		}
		if err := c.target.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error; err != nil {
			return err
		}
		step.Rows += int64(len(rows))
		c.progress(step)
		return nil
	})
	return t, err
}

// compare reads a table back from both sides.
func (c *copying) compare(t table, before tally) error {
	c.progress(CopyStep{Table: t.name, Rows: before.rows, Of: before.rows, Comparing: true})
	now, err := t.tally(c.source)
	if err != nil {
		return fmt.Errorf("reading %s back from the source: %w", t.name, err)
	}
	there, err := t.tally(c.target)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s back from the destination: %w", t.name, err)
	case now != before:
		return fmt.Errorf("%s of the source has changed meanwhile: stop every service on it, and start the copy again", t.name)
	case there != before:
		return fmt.Errorf("%s differs, %d rows in the source and %d in the destination: stop what writes to the destination, and start the copy again", t.name, before.rows, there.rows)
	}
	return nil
}
