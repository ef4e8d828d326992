package maintenance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// CopyStep is how far a copy has come.
type CopyStep struct {
	Table     string
	Rows, Of  int64
	Comparing bool // every table is copied, and this one is read back from both sides
}

// ErrNotEmpty is for a destination that holds something else.
var ErrNotEmpty = errors.New("it has to be empty, or hold what an interrupted copy of the same source has left: drop " +
	"and create the database, or delete the file, and start again")

type copying struct {
	source, target *gorm.DB
	progress       func(CopyStep)
}

// Copy makes the tables of the target equal to those of the source. It reads everything back from
// both sides and compares. A copy that was interrupted is completed by another one; Copy refuses a
// target with rows that the source does not have. tables are in the order in which they refer to
// each other.
func Copy(source, target *gorm.DB, tables []Table, progress func(CopyStep)) error {
	c := &copying{source, target, progress}
	for _, t := range tables {
		extra, err := t.countExtra(source, target)
		if err != nil {
			return fmt.Errorf("looking through %s of the destination: %w", t.name, err)
		}
		if extra > 0 {
			return fmt.Errorf("%s of the destination has rows that the source does not have, %d of them: %w", t.name,
				extra, ErrNotEmpty)
		}
	}
	checksums := make([]checksum, len(tables))
	for i, t := range tables {
		var err error
		if checksums[i], err = t.copy(c); err != nil {
			return fmt.Errorf("copying %s: %w", t.name, err)
		}
	}
	for i, t := range tables {
		if err := c.compare(t, checksums[i]); err != nil {
			return err
		}
	}
	return nil
}

// countExtra counts the rows of the target that the source does not have.
func countExtra[R Row](source, target *gorm.DB) (extra int64, err error) {
	column, _ := (*new(R)).Key()
	err = inBatches(target, func(rows []R) error {
		keys := make([]any, len(rows))
		for i, r := range rows {
			_, keys[i] = r.Key()
		}
		var both int64
		err := source.Model(new(R)).Where(column+" IN ?", keys).Count(&both).Error
		extra += int64(len(rows)) - both
		return err
	})
	return extra, err
}

// copyRows overwrites rows that exist, so that they become equal to the source.
func copyRows[R Row](c *copying) (sum checksum, err error) {
	step := CopyStep{Table: (*new(R)).TableName()}
	if err := c.source.Model(new(R)).Count(&step.Of).Error; err != nil {
		return sum, err
	}
	c.progress(step)
	err = inBatches(c.source, func(rows []R) error {
		for _, r := range rows {
			sum.add(r)
		}
		if err := c.target.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error; err != nil {
			return err
		}
		step.Rows += int64(len(rows))
		c.progress(step)
		return nil
	})
	return sum, err
}

// compare reads a table back from both sides.
func (c *copying) compare(t Table, before checksum) error {
	c.progress(CopyStep{
		Table:     t.name,
		Rows:      before.rows,
		Of:        before.rows,
		Comparing: true,
	})
	now, err := t.checksum(c.source)
	if err != nil {
		return fmt.Errorf("reading %s back from the source: %w", t.name, err)
	}
	there, err := t.checksum(c.target)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s back from the destination: %w", t.name, err)
	case now != before:
		return fmt.Errorf("%s of the source has changed meanwhile: stop every service on it, and start the copy again",
			t.name)
	case there != before:
		return fmt.Errorf("%s differs (rows in the source: %d, in the destination: %d): stop what writes to the "+
			"destination, and start the copy again", t.name, before.rows, there.rows)
	}
	return nil
}

// checksum is the number of rows of a table and a sum over them that does not depend on their
// order.
type checksum struct {
	rows int64
	sum  [sha256.Size]byte
}

func (c *checksum) add(r Row) {
	c.rows++
	for i, b := range digest(r) {
		c.sum[i] ^= b
	}
}

func checksumOf[R Row](db *gorm.DB) (c checksum, err error) {
	err = inBatches(db, func(rows []R) error {
		for _, r := range rows {
			c.add(r)
		}
		return nil
	})
	return c, err
}

// digest is a hash of all columns, each written so that no two rows have the same text.
func digest(r Row) [sha256.Size]byte {
	hash := sha256.New()
	fields := reflect.ValueOf(r)
	for i := range fields.NumField() {
		switch value := fields.Field(i).Interface().(type) {
		case time.Time:
			_, _ = fmt.Fprintf(hash, "%t %d\n", value.IsZero(), value.UnixMilli())
		case []byte:
			_, _ = fmt.Fprintf(hash, "%t %x\n", value == nil, value)
		default:
			_, _ = fmt.Fprintf(hash, "%#v\n", value) // a number, or a text in quotes
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
