package persistence

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// expiring are the tables from which DeleteExpired deletes, each with its key and the column with the end of a row.
var expiring = []struct{ table, key, end string }{
	{"authorization_codes", "id", "forget_after"},
	{"grants", "id", "forget_after"},
	{"used_assertions", "digest", "forget_after"},
	{"client_documents", "digest", "forget_after"},
	{"counters", "name", "ends_at"},
}

// deleteSome deletes up to 500 rows whose end has passed. The list of rows is a derived table, because MySQL cannot otherwise select
// from the table that it deletes from. The condition is repeated outside the list: after waiting for a row lock, a server checks
// only the outer condition again.
const deleteSome = `DELETE FROM %[1]s WHERE %[3]s <= ? AND %[2]s IN
	(SELECT %[2]s FROM (SELECT %[2]s FROM %[1]s WHERE %[3]s <= ? LIMIT 500) AS batch)`

// DeleteExpired implements oauth.Store. Each batch is one transaction, so that other writers can run in between.
func (s *Store) DeleteExpired(ctx context.Context, now time.Time) (deleted int, err error) {
	for _, from := range expiring {
		statement := fmt.Sprintf(deleteSome, from.table, from.key, from.end)
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
