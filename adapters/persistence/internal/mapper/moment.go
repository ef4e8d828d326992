package mapper

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm/schema"
)

// Moment is a time that the database keeps as UTC milliseconds since 1970,
// and the zero time as NULL.
type Moment time.Time

var _ sql.Scanner = (*Moment)(nil)

// Scan implements sql.Scanner.
func (m *Moment) Scan(value any) error {
	switch stored := value.(type) {
	case nil:
		*m = Moment{}
	case int64:
		*m = Moment(time.UnixMilli(stored).UTC())
	default:
		return fmt.Errorf("reading a time: %T is not a number of milliseconds", value)
	}
	return nil
}

// millis is GORM's serializer of a Moment.
type millis struct{}

// GORM has one registry per process, which the site may use too; hence the long name.
func init() { schema.RegisterSerializer("pasteport_millis", millis{}) }

// Value implements schema.SerializerValuerInterface.
func (millis) Value(_ context.Context, field *schema.Field, _ reflect.Value, value any) (any, error) {
	at, ok := value.(time.Time)
	switch {
	case !ok:
		return nil, fmt.Errorf("writing %s: %T is not a time", field.Name, value)
	case at.IsZero():
		return nil, nil
	}
	return at.UnixMilli(), nil
}

// Scan implements schema.SerializerInterface.
func (millis) Scan(ctx context.Context, field *schema.Field, target reflect.Value, value any) error {
	var at Moment
	if err := at.Scan(value); err != nil {
		return fmt.Errorf("reading %s: %w", field.Name, err)
	}
	return field.Set(ctx, target, time.Time(at))
}
