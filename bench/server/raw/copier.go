package raw

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// template is the first row of a table. Its copies have other values in some columns.
type template struct {
	values  []any
	changed []int
}

func templateOf(db *sql.DB, table string, changed ...string) (*template, error) {
	rows, err := db.Query("SELECT * FROM " + table + " LIMIT 1")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	t := &template{values: make([]any, len(names))}
	into := make([]any, len(names))
	for i := range names {
		into[i] = &t.values[i]
	}
	if !rows.Next() {
		return nil, fmt.Errorf("%s is empty", table)
	}
	for _, change := range changed {
		t.changed = append(t.changed, slices.Index(names, change))
	}
	return t, errors.Join(rows.Scan(into...), rows.Close())
}

// parameters returns a ? for each column.
func (t *template) parameters() string { return "?" + strings.Repeat(", ?", len(t.values)-1) }

// copy returns the values of a copy; changes holds the changed columns.
func (t *template) copy(changes ...any) []any {
	values := slices.Clone(t.values)
	for i, change := range changes {
		values[t.changed[i]] = change
	}
	return values
}

// copier inserts copies of the first row of a table.
type copier struct {
	*template
	insert *sql.Stmt
}

func copierOf(db *sql.DB, table string, changed ...string) (c copier, err error) {
	if c.template, err = templateOf(db, table, changed...); err == nil {
		c.insert, err = db.Prepare("INSERT INTO " + table + " VALUES (" + c.parameters() + ")")
	}
	return c, err
}

func (c copier) add(changes ...any) error {
	_, err := c.insert.Exec(c.copy(changes...)...)
	return err
}
