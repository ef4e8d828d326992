package maintenance

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
)

// checksum is the number of rows of a table and a sum over them that does not depend on their order.
type checksum struct {
	rows int64
	sum  [sha256.Size]byte
}

func (c *checksum) add(r Row) {
	c.rows++
	for i, b := range digest(r) {
		c.sum[i] ^= b
	}
}

func checksumOf[R Row](db *gorm.DB) (c checksum, err error) {
	err = inBatches(db, func(rows []R) error {
		for _, r := range rows {
			c.add(r)
		}
		return nil
	})
	return c, err
}

// digest is a hash of all columns, each written so that no two rows have the same text.
func digest(r Row) [sha256.Size]byte {
	hash := sha256.New()
	fields := reflect.ValueOf(r)
	for i := range fields.NumField() {
		switch value := fields.Field(i).Interface().(type) {
		case time.Time:
			_, _ = fmt.Fprintf(hash, "%t %d\n", value.IsZero(), value.UnixMilli())
		case []byte:
			_, _ = fmt.Fprintf(hash, "%t %x\n", value == nil, value)
		default:
			_, _ = fmt.Fprintf(hash, "%#v\n", value) // a number, or a text in quotes
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
