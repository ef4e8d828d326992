package mapper

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// Statement is a statement with the values of its parameters, in the syntax of an engine.
type Statement struct {
	postgres bool
	text     string
	values   []any
}

// NewStatement returns an empty statement for the engine of db.
func NewStatement(db *gorm.DB) *Statement { return &Statement{postgres: db.Name() == "postgres"} }

// Write appends SQL, and a value for each ? in it.
func (s *Statement) Write(text string, values ...any) {
	if s.postgres {
		text = numbered(text, len(s.values))
	}
	s.text += text // copies nothing for the first text
	s.values = append(s.values, values...)
}

// numbered replaces each ? by its number, as PostgreSQL's driver expects.
func numbered(text string, number int) string {
	converted := make([]byte, 0, len(text)+2*strings.Count(text, "?"))
	for _, c := range []byte(text) {
		if c != '?' {
			converted = append(converted, c)
			continue
		}
		number++
		converted = strconv.AppendInt(append(converted, '$'), int64(number), 10)
	}
	return string(converted)
}

// Run runs the statement and returns the number of rows that it has changed.
func (s *Statement) Run(db *gorm.DB) (int64, error) {
	done, err := db.Statement.ConnPool.ExecContext(db.Statement.Context, s.text, s.values...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Query runs the statement and returns its rows.
func (s *Statement) Query(ctx context.Context, db *gorm.DB) (*sql.Rows, error) {
	return db.Statement.ConnPool.QueryContext(ctx, s.text, s.values...)
}
