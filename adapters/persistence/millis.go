package persistence

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm/schema"
)

// moment is a field for a column with a time: UTC milliseconds since 1970, NULL for the zero time.
type moment struct{ of *time.Time }

func (m moment) Value() (driver.Value, error) {
	if m.of.IsZero() {
		return nil, nil
	}
	return m.of.UnixMilli(), nil
}

func (m moment) Scan(value any) error {
	switch stored := value.(type) {
	case nil:
		*m.of = time.Time{}
	case int64:
		*m.of = time.UnixMilli(stored).UTC()
	default:
		return fmt.Errorf("reading a time: %T is not a number of milliseconds", value)
	}
	return nil
}

// millis lets GORM keep times in the same way.
type millis struct{}

// GORM has one registry per process, which the site may use too; hence the long name.
func init() { schema.RegisterSerializer("pasteport_millis", millis{}) }

func (millis) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	at := value.(time.Time) // as every field with this serializer is
	return moment{&at}.Value()
}

func (millis) Scan(ctx context.Context, field *schema.Field, target reflect.Value, value any) error {
	var at time.Time
	if err := (moment{&at}).Scan(value); err != nil {
		return fmt.Errorf("reading %s: %w", field.Name, err)
	}
	return field.Set(ctx, target, at)
}
