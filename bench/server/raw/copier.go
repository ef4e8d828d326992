package raw

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// copier inserts copies of the first row of a table with other values in some columns, several rows per statement.
type copier struct {
	insert  *sql.Stmt
	values  []any
	changed []int
}

func copierOf(db *sql.DB, table string, atOnce int, changed ...string) (*copier, error) {
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
	c := &copier{values: slices.Repeat(values, atOnce)}
	for row := range atOnce {
		for _, change := range changed {
			c.changed = append(c.changed, row*len(names)+slices.Index(names, change))
		}
	}
	places := ", (?" + strings.Repeat(", ?", len(names)-1) + ")"
	c.insert, err = db.Prepare("INSERT INTO " + table + " VALUES " + strings.Repeat(places, atOnce)[2:])
	return c, err
}

// copy inserts the rows; changes holds the changed columns row by row.
func (c *copier) copy(changes ...any) error {
	values := slices.Clone(c.values)
	for i, change := range changes {
		values[c.changed[i]] = change
	}
	_, err := c.insert.Exec(values...)
	return err
}
