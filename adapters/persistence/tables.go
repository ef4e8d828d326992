package persistence

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
)

// row is one of a table that is copied and checked as a whole.
type row interface {
	TableName() string
	key() (column string, value any)
}

func (g grantRow) key() (column string, value any)     { return "id", g.ID }
func (s secretRow) key() (column string, value any)    { return "digest", s.Digest }
func (a assertionRow) key() (column string, value any) { return "digest", a.Digest }
func (s stepRow) key() (column string, value any)      { return "number", s.Number }

// batchRows keeps every statement short, with the number of values that SQLite binds and the length that MySQL takes.
const batchRows = 200

// batches reads a whole table in the order of its key.
func batches[R row](db *gorm.DB, use func([]R) error) error {
	column, _ := (*new(R)).key()
	for page := db; ; {
		var rows []R
		if err := page.Order(column).Limit(batchRows).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		if err := use(rows); err != nil {
			return err
		}
		_, last := rows[len(rows)-1].key()
		page = db.Where(column+" > ?", last)
	}
}

// tally tells what a table holds, in whatever order it was read.
type tally struct {
	rows int64
	sum  [sha256.Size]byte
}

func (t *tally) add(r row) {
	t.rows++
	for i, b := range digestOf(r) {
		t.sum[i] ^= b
	}
}

func tallyOf[R row](db *gorm.DB) (t tally, err error) {
	err = batches(db, func(rows []R) error {
		for _, r := range rows {
			t.add(r)
		}
		return nil
	})
	return t, err
}

// digestOf is a hash of all columns, which are written so that no two rows look the same.
func digestOf(r row) [sha256.Size]byte {
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
