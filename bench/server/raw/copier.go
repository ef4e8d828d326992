package raw

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// copier inserts copies of the first row of a table with other values in some columns.
type copier struct {
	insert  *sql.Stmt
	values  []any
	changed []int
}

func copierOf(db *sql.DB, table string, changed ...string) (*copier, error) {
	rows, err := db.Query("SELECT * FROM " + table + " LIMIT 1")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(names))
	into := make([]any, len(names))
	for i := range names {
		into[i] = &values[i]
	}
	if !rows.Next() {
		return nil, fmt.Errorf("%s is empty", table)
	}
	if err := errors.Join(rows.Scan(into...), rows.Close()); err != nil {
		return nil, err
	}
	c := &copier{values: values}
	for _, change := range changed {
		c.changed = append(c.changed, slices.Index(names, change))
	}
	c.insert, err = db.Prepare("INSERT INTO " + table + " VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")")
	return c, err
}

// copy inserts a row; changes holds the changed columns.
func (c *copier) copy(changes ...any) error {
	values := slices.Clone(c.values)
	for i, change := range changes {
		values[c.changed[i]] = change
	}
	_, err := c.insert.Exec(values...)
	return err
}
