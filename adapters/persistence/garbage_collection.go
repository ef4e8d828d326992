package persistence

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// keyedTable is a table with its primary key.
type keyedTable struct{ name, key string }

// expiring are the tables from which DeleteExpired deletes. They have the end of a row in
// forget_after.
var expiring = []keyedTable{
	{"authorization_codes", "id"},
	{"grants", "id"},
	{"used_assertions", "digest"},
	{"client_documents", "digest"},
}

const deletedAtOnce = 500 // in one transaction, so that others may write between two

// DeleteExpired implements oauth.Store.
func (s *Store) DeleteExpired(ctx context.Context, now time.Time) (deleted int, err error) {
	for _, from := range expiring {
		for rows := int64(deletedAtOnce); rows > 0; deleted += int(rows) {
			err := s.transaction(ctx, func(tx *gorm.DB) error {
				rows = 0
				var keys []any // not every engine limits a DELETE
				found := tx.Table(from.name).Where("forget_after <= ?", now.UnixMilli()).Order("forget_after").
					Limit(deletedAtOnce).Pluck(from.key, &keys)
				if found.Error != nil || len(keys) == 0 {
					return failed("finding expired rows", found.Error)
				}
				done := tx.Exec("DELETE FROM "+from.name+" WHERE forget_after <= ? AND "+from.key+" IN ?",
					now.UnixMilli(), keys)
				rows = done.RowsAffected
				return failed("deleting expired rows", done.Error)
			})
			if err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}
