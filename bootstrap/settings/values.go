package settings

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/jsonschema-go/jsonschema"
)

// span is a duration that is printed without zero units: 1h instead of 1h0m0s.
type span struct {
	target *time.Duration
	orZero bool
	orOff  bool
}

func (s *span) Set(text string) error {
	value, err := time.ParseDuration(text)
	if s.orOff && value <= 0 {
		value = -1
	}
	if err == nil && value == 0 && !s.orZero {
		err = errors.New("it cannot be 0")
	}
	if err == nil {
		*s.target = value
	}
	return err
}

func (s *span) String() string {
	if s.orOff && *s.target < 0 {
		return "0s"
	}
	return FormatDuration(*s.target)
}

// FormatDuration omits zero units.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (*span) Type() string { return "duration" }

// toggle is a boolean that can also be written as on or off.
type toggle struct{ target *bool }

func (t *toggle) Set(text string) (err error) {
	switch text {
	case "on":
		*t.target = true
	case "off":
		*t.target = false
	default:
		*t.target, err = strconv.ParseBool(text)
	}
	return err
}

func (t *toggle) String() string { return strconv.FormatBool(*t.target) }

func (*toggle) Type() string { return "bool" }

// count is a whole number with a minimum.
type count struct {
	target *int
	least  int
}

func (c *count) Set(text string) error {
	value, err := strconv.Atoi(text)
	if err == nil && value < c.least {
		err = fmt.Errorf("it is less than %d", c.least)
	}
	if err == nil {
		*c.target = value
	}
	return err
}

func (c *count) String() string { return strconv.Itoa(*c.target) }

func (*count) Type() string { return "number" }

// size is a number of bytes, printed in the largest binary unit that fits it without a remainder.
type size struct{ target *int64 }

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (s *size) Set(text string) error {
	bytes, err := humanize.ParseBytes(text)
	switch {
	case err != nil:
		return fmt.Errorf("reading the size: %w", err)
	case bytes == 0 || bytes > math.MaxInt64:
		return errors.New("it is 0 or too large")
	}
	*s.target = int64(bytes)
	return nil
}

func (s *size) String() string {
	for _, unit := range sizeUnits {
		if *s.target >= unit.bytes && *s.target%unit.bytes == 0 {
			return strconv.FormatInt(*s.target/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(*s.target, 10)
}

func (*size) Type() string { return "size" }

type choice struct {
	target *string
	words  []string
}

func (c *choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return errors.New("it is not one of " + strings.Join(c.words, ", "))
	}
	*c.target = text
	return nil
}

func (c *choice) String() string { return *c.target }

func (c *choice) Type() string { return strings.Join(c.words, "|") }

// Item parses and formats one item of a list.
type Item[T any] struct {
	Parse    func(string) (T, error)
	Format   func(T) string
	Expected string // what to write, in the plural, as in "host names"
	// Of items that can be mappings, which Parse gets and Format returns as JSON objects; nil for
	// none.
	Mapping *jsonschema.Schema
}

// list is a flag that can be repeated, with items separated by commas or lines. An item with a
// comma needs quotes.
type list[T any] struct {
	target *[]T
	item   Item[T]
	set    bool
}

func (l *list[T]) Set(text string) error {
	items, err := l.split(text)
	if err != nil {
		return err
	}
	if !l.set {
		return l.Replace(items)
	}
	for _, item := range items {
		if err := l.Append(item); err != nil {
			return err
		}
	}
	return nil
}

// split returns the items of one text: those of a YAML sequence or one mapping, if the items can be
// mappings, else those between commas.
func (l *list[T]) split(text string) ([]string, error) {
	if l.item.Mapping != nil && isCollection(text) {
		return itemsOf(text)
	}
	lines := csv.NewReader(strings.NewReader(text))
	lines.FieldsPerRecord = -1 // lines may differ in their number of items
	records, err := lines.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	return slices.Concat(records...), nil
}

// Append adds one item.
func (l *list[T]) Append(text string) error {
	item, err := l.item.Parse(strings.TrimSpace(text))
	if err != nil && isMapping(text) {
		return &mappingError{len(*l.target) + 1, err}
	}
	if err == nil {
		*l.target = append(*l.target, item)
	}
	return err
}

// Replace sets the whole list.
func (l *list[T]) Replace(items []string) error {
	before := *l.target
	*l.target = make([]T, 0, len(items))
	for _, item := range items {
		if err := l.Append(item); err != nil {
			*l.target = before
			return err
		}
	}
	l.set = true
	return nil
}

// GetSlice returns the formatted items.
func (l *list[T]) GetSlice() []string {
	items := make([]string, 0, len(*l.target))
	for _, item := range *l.target {
		items = append(items, l.item.Format(item))
	}
	return items
}

func (l *list[T]) String() string {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write(l.GetSlice()) // a buffer does not fail
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

func (*list[T]) Type() string { return "list" }
