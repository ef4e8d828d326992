package persistence

import (
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/go-json-experiment/json"
)

// list is a field for a column with a list in JSON, "" when it is empty. SCHEMA.md describes the
// members. The standard library would write a digest as 32 numbers, and take four times as long to
// read them (2026-11-29).
type list[T any] struct{ of *[]T }

func (l list[T]) Value() (driver.Value, error) {
	if len(*l.of) == 0 {
		return "", nil
	}
	encoded, err := json.Marshal(*l.of)
	return string(encoded), err
}

func (l list[T]) Scan(value any) error {
	*l.of = nil
	var text sql.NullString
	if err := text.Scan(value); err != nil || text.String == "" {
		return err
	}
	if err := json.Unmarshal([]byte(text.String), l.of); err != nil {
		return fmt.Errorf("reading tokens: %w", err)
	}
	return nil
}
