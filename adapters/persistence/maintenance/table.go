// Package maintenance holds an operator's tools for whole stores: it checks that every row of a
// table can be read, and copies tables between databases of any kind. A store describes its tables
// as Table values by TableOf. Copy writes the rows of the source to the destination and compares
// checksums of both sides; Table.Check, CheckFile and CheckClock each return one Check.
package maintenance

import "gorm.io/gorm"

// Row is a row of a table: a struct whose fields are its columns.
type Row interface {
	TableName() string
	Key() (column string, value any)
}

// Table is a table that is checked and copied as a whole.
type Table struct {
	name       string
	countExtra func(source, target *gorm.DB) (int64, error)
	copy       func(c *copying) (checksum, error)
	checksum   func(db *gorm.DB) (checksum, error)
	check      func(db *gorm.DB) Check
}

// TableOf describes the table of rows of type R. readable reports whether this version can read
// every column of a row.
func TableOf[R Row](readable func(R) bool) Table {
	name := (*new(R)).TableName()
	return Table{name, countExtra[R], copyRows[R], checksumOf[R], func(db *gorm.DB) Check {
		return checkRows(db, readable)
	}}
}

// batchSize keeps every statement short, below the number of values that SQLite binds and the
// length that MySQL takes.
const batchSize = 200

// inBatches reads a whole table in the order of its key.
func inBatches[R Row](db *gorm.DB, use func([]R) error) error {
	column, _ := (*new(R)).Key()
	for page := db; ; {
		var rows []R
		if err := page.Order(column).Limit(batchSize).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		if err := use(rows); err != nil {
			return err
		}
		_, last := rows[len(rows)-1].Key()
		page = db.Where(column+" > ?", last)
	}
}
