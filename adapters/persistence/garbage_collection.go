package persistence

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// expiringTable has a column with the end of a row.
type expiringTable struct{ table, key, end string }

// expiring are the tables from which DeleteExpired deletes.
var expiring = []expiringTable{
	{"authorization_codes", "id", "forget_after"},
	{"grants", "id", "forget_after"},
	{"used_assertions", "digest", "forget_after"},
	{"client_documents", "digest", "forget_after"},
}

// deleteSome returns the statement that deletes up to 500 rows whose end has passed, the oldest
// first, so that every plan uses the index. The condition is repeated outside the list: after
// waiting for a row lock, a server checks only the outer condition again. The sum keeps the index
// off it, because a plan would read all expired rows for each 500 of them.
func (e engine) deleteSome(from expiringTable) string {
	keys := "SELECT " + from.key + " FROM " + from.table + " WHERE " + from.end + " <= ? ORDER BY " +
		from.end + " LIMIT 500"
	return "DELETE FROM " + from.table + " WHERE " + from.end + " + 0 <= ? AND " + from.key + " " +
		fmt.Sprintf(e.among, keys)
}

// DeleteExpired implements oauth.Store. Each batch is one transaction, so that other
// writers can run in between.
func (s *Store) DeleteExpired(ctx context.Context, now time.Time) (deleted int, err error) {
	for _, from := range expiring {
		statement := s.engine.deleteSome(from)
		for rows := int64(1); rows > 0; {
			err := s.transaction(ctx, func(tx *gorm.DB) error {
				done := tx.Exec(statement, now.UnixMilli(), now.UnixMilli())
				rows = done.RowsAffected
				return failed("deleting expired rows", done.Error)
			})
			if err != nil {
				return deleted, err
			}
			deleted += int(rows)
		}
	}
	return deleted, nil
}
