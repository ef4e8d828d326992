// Package mapper reads and writes the rows of a table without GORM, whose queries cost a code flow
// a tenth of its time. A Table names the columns and where their values are in a struct.
// ScanTargets reads a row; Insert adds rows; Update writes the columns that differ, unless the
// row has changed since it was read. Both make the row equal to what the database returns for it.
// The serializer "pasteport_millis" lets GORM keep times in the same way (Moment).
package mapper

import (
	"bytes"
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Table maps structs of type R to the rows of a table. A row also has a version,
// which each Update increments.
type Table[R any] struct {
	name       string
	columns    []column[R] // the key first
	list       string      // the names of the columns
	parameters string      // a ? for each of them
	insert     string      // the statement that adds one row
}

type column[R any] struct {
	name    string
	index   int                       // of the field in R
	encoded func(pointer any) Encoded // nil for the types that mapper knows
}

// NewTable describes a table by the fields of R, the key first. The names of its columns are those
// that GORM gives them, and the database assigns a column with the tag autoIncrement. A field is a
// string, uint32, []byte or time.Time, or one whose pointer encoded turns into an Encoded; encoded
// returns nil for any other. NewTable prepares the texts of statements, because building one costs
// more than its execution in a file.
func NewTable[R any](name string, encoded func(pointer any) Encoded) *Table[R] {
	t := &Table[R]{name: name}
	for index, field := range reflect.VisibleFields(reflect.TypeFor[R]()) {
		if strings.Contains(field.Tag.Get("gorm"), "autoIncrement") {
			continue
		}
		c := column[R]{name: schema.NamingStrategy{}.ColumnName("", field.Name), index: index}
		if encoded != nil && encoded(reflect.New(field.Type).Interface()) != nil {
			c.encoded = encoded
		}
		t.columns = append(t.columns, c)
		t.list, t.parameters = t.list+", "+c.name, t.parameters+", ?"
	}
	t.list, t.parameters = t.list[2:], t.parameters[2:]
	t.insert = "INSERT INTO " + name + " (" + t.list + ") VALUES (" + t.parameters + ")"
	return t
}

// field returns a *string, *uint32, *[]byte, *Moment or Encoded.
func (c column[R]) field(row *R) any {
	pointer := reflect.ValueOf(row).Elem().Field(c.index).Addr()
	if pointer.Elem().Kind() == reflect.String {
		return pointer.Convert(reflect.TypeFor[*string]()).Interface()
	}
	switch value := pointer.Interface().(type) {
	case *time.Time:
		return (*Moment)(value)
	case *uint32, *[]byte:
		return value
	default:
		return c.encoded(value)
	}
}

// Encoded is a field with its own binary format. Nil means NULL.
type Encoded interface {
	sql.Scanner
	Encode() []byte
	Equal(other Encoded) bool // for values with times in milliseconds
	Normalize()               // makes the value equal to one that was scanned
}

// valueOf returns the value of a column: NULL for a zero time and for nil bytes.
func valueOf(field any) any {
	switch at := field.(type) {
	case *string:
		return *at
	case *uint32:
		return int64(*at)
	case *[]byte:
		return nullable(*at)
	case Encoded:
		return nullable(at.Encode())
	case *Moment:
		if !time.Time(*at).IsZero() {
			return time.Time(*at).UnixMilli()
		}
	}
	return nil
}

func nullable(bytes []byte) any {
	if bytes == nil {
		return nil
	}
	return bytes
}

// isEqual compares two fields of a column without their values, whose memory would cost
// more than the comparison.
func isEqual(field, other any) bool {
	switch at := field.(type) {
	case *string:
		return *at == *other.(*string)
	case *uint32:
		return *at == *other.(*uint32)
	case *[]byte:
		return bytes.Equal(*at, *other.(*[]byte)) && (*at == nil) == (*other.(*[]byte) == nil)
	case Encoded:
		return at.Equal(other.(Encoded))
	case *Moment:
		return time.Time(*at).Equal(time.Time(*other.(*Moment)))
	}
	return false
}

// ScanTargets returns pointers to the fields of a row, in the order of ColumnList.
func (t *Table[R]) ScanTargets(row *R) []any {
	targets := make([]any, 0, len(t.columns)+1)
	for _, c := range t.columns {
		targets = append(targets, c.field(row))
	}
	return targets
}

// normalize makes a row equal to the one that the database would return:
// with times in milliseconds.
func (t *Table[R]) normalize(row *R) {
	for _, c := range t.columns {
		switch at := c.field(row).(type) {
		case Encoded:
			at.Normalize()
		case *Moment:
			*at = Moment(Milliseconds(time.Time(*at)))
		}
	}
}

// Milliseconds returns a time as the database keeps it.
func Milliseconds(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return time.UnixMilli(at.UnixMilli()).UTC()
}

// Insert adds rows.
func (t *Table[R]) Insert(db *gorm.DB, rows ...*R) error {
	values := make([]any, 0, len(rows)*len(t.columns))
	for _, row := range rows {
		values = t.appendValues(values, row)
	}
	statement := NewStatement(db)
	statement.Write(t.insert+strings.Repeat(", ("+t.parameters+")", len(rows)-1), values...)
	_, err := statement.Run(db)
	return err
}

// WriteValues writes the values of a row, which it normalizes, separated by commas.
func (t *Table[R]) WriteValues(to *Statement, row *R) {
	to.Write(t.parameters, t.appendValues(nil, row)...)
}

func (t *Table[R]) appendValues(values []any, row *R) []any {
	t.normalize(row)
	for _, c := range t.columns {
		values = append(values, valueOf(c.field(row)))
	}
	return values
}

// WriteUpdate writes the statement that changes the row with the version to its new state, which it
// normalizes, and reports whether they differ. It names no other column, because SQLite updates the
// index of every column that a statement names.
func (t *Table[R]) WriteUpdate(to *Statement, was, now *R, version int64) (changed bool) {
	t.normalize(now)
	text, values := make([]byte, 0, 256), make([]any, 0, len(t.columns))
	text = append(text, "UPDATE "+t.name+" SET version = version + 1"...)
	for _, c := range t.columns {
		if field := c.field(now); !isEqual(field, c.field(was)) {
			text = append(append(append(text, ", "...), c.name...), " = ?"...)
			values = append(values, valueOf(field))
			changed = true
		}
	}
	text = append(append(append(text, " WHERE "...), t.columns[0].name...), " = ? AND version = ?"...)
	to.Write(string(text), append(values, valueOf(t.columns[0].field(was)), version)...)
	return changed
}

// ErrOvertaken means that another process has changed a row since it was read.
var ErrOvertaken = errors.New("another process was faster")

// Update runs the statement of WriteUpdate, unless the states are equal. It reports whether
// they differ. ErrOvertaken.
func (t *Table[R]) Update(db *gorm.DB, was, now *R, version int64) (changed bool, err error) {
	statement := NewStatement(db)
	if !t.WriteUpdate(statement, was, now, version) {
		return false, nil
	}
	rows, err := statement.Run(db)
	if err == nil && rows == 0 {
		err = ErrOvertaken
	}
	return true, err
}

// ColumnList lists the columns for a statement.
func (t *Table[R]) ColumnList() string { return t.list }
