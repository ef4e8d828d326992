// Package maintenance holds an operator's tools for whole stores: Check is the result of one check,
// and Copy copies tables between databases of any kind and compares both sides.
package maintenance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Table is a table that is copied as a whole.
type Table struct{ Name, Key string }

// CopyStep is how far a copy has come.
type CopyStep struct {
	Table     string
	Rows, Of  int64
	Comparing bool // every table is copied, and this one is read back from both sides
}

// ErrNotEmpty is for a destination that holds something else.
var ErrNotEmpty = errors.New("it has to be empty, or hold what an interrupted copy of the same source has left: drop " +
	"and create the database, or delete the file, and start again")

// Copy makes the tables of the target equal to those of the source. It reads everything back from
// both sides and compares. A copy that was interrupted is completed by another one; Copy refuses a
// target with rows that the source does not have. tables are in the order in which they refer to
// each other.
func Copy(source, target *gorm.DB, tables []Table, progress func(CopyStep)) error {
	for _, t := range tables {
		if err := t.refuseExtra(source, target); err != nil {
			return fmt.Errorf("looking through %s of the destination: %w", t.Name, err)
		}
	}
	before := make([]checksum, len(tables))
	for i, t := range tables {
		var err error
		if before[i], err = t.copy(source, target, progress); err != nil {
			return fmt.Errorf("copying %s: %w", t.Name, err)
		}
	}
	for i, t := range tables {
		progress(CopyStep{t.Name, before[i].rows, before[i].rows, true})
		if err := t.compare(source, target, before[i]); err != nil {
			return fmt.Errorf("comparing %s: %w", t.Name, err)
		}
	}
	return nil
}

// batchSize keeps every statement short, below the number of values that SQLite binds and the
// length that MySQL takes.
const batchSize = 200

// eachBatch reads the whole table in the order of its key.
func (t Table) eachBatch(db *gorm.DB, use func(rows []map[string]any) error) error {
	for page := db.Table(t.Name); ; {
		var rows []map[string]any
		if err := page.Order(t.Key).Limit(batchSize).Find(&rows).Error; err != nil || len(rows) == 0 {
			return err
		}
		if err := use(rows); err != nil {
			return err
		}
		page = db.Table(t.Name).Where(t.Key+" > ?", rows[len(rows)-1][t.Key])
	}
}

func (t Table) refuseExtra(source, target *gorm.DB) error {
	return t.eachBatch(target, func(rows []map[string]any) error {
		keys := make([]any, len(rows))
		for i, row := range rows {
			keys[i] = row[t.Key]
		}
		var both int64
		if err := source.Table(t.Name).Where(t.Key+" IN ?", keys).Count(&both).Error; err != nil {
			return err
		}
		if extra := int64(len(rows)) - both; extra > 0 {
			return fmt.Errorf("it has rows that the source does not have, %d of them: %w", extra, ErrNotEmpty)
		}
		return nil
	})
}

// copy overwrites rows that exist, so that they become equal to the source.
func (t Table) copy(source, target *gorm.DB, progress func(CopyStep)) (sum checksum, err error) {
	step := CopyStep{Table: t.Name}
	if err := source.Table(t.Name).Count(&step.Of).Error; err != nil {
		return sum, err
	}
	progress(step)
	err = t.eachBatch(source, func(rows []map[string]any) error {
		_ = sum.add(rows)
		overwrite := clause.OnConflict{
			Columns:   []clause.Column{{Name: t.Key}},
			DoUpdates: clause.AssignmentColumns(slices.Sorted(maps.Keys(rows[0]))),
		}
		step.Rows += int64(len(rows))
		defer progress(step)
		return target.Table(t.Name).Clauses(overwrite).Create(rows).Error
	})
	return sum, err
}

// compare reads the table back from both sides.
func (t Table) compare(source, target *gorm.DB, before checksum) error {
	var now, there checksum
	if err := t.eachBatch(source, now.add); err != nil {
		return fmt.Errorf("reading the source again: %w", err)
	}
	if err := t.eachBatch(target, there.add); err != nil {
		return fmt.Errorf("reading the destination: %w", err)
	}
	switch {
	case now != before:
		return errors.New("the source has changed meanwhile: stop every service on it, and start the copy again")
	case there != before:
		return fmt.Errorf("they differ (rows in the source: %d, in the destination: %d): stop what writes to the "+
			"destination, and start the copy again", before.rows, there.rows)
	}
	return nil
}

// checksum is the number of rows of a table and a sum over them that does not depend on their
// order.
type checksum struct {
	rows int64
	sum  [sha256.Size]byte
}

// add adds rows, of which it hashes each column so that no two rows have the same text.
func (c *checksum) add(rows []map[string]any) error {
	for _, row := range rows {
		hash := sha256.New()
		for _, column := range slices.Sorted(maps.Keys(row)) {
			_, _ = fmt.Fprintf(hash, "%s %#v\n", column, row[column])
		}
		for i, b := range hash.Sum(nil) {
			c.sum[i] ^= b
		}
		c.rows++
	}
	return nil
}
