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
			err := s.transaction(ctx, func(tx *gorm.DB) (err error) {
				rows, err = from.deleteExpired(tx, now.UnixMilli())
				return failed("deleting expired rows", err)
			})
			if err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// deleteExpired deletes some rows whose end has passed. It asks for their keys before, because not
// every engine limits a DELETE.
func (t keyedTable) deleteExpired(tx *gorm.DB, now int64) (rows int64, err error) {
	var keys []any
	err = tx.Table(t.name).Where("forget_after <= ?", now).Order("forget_after").Limit(deletedAtOnce).
		Pluck(t.key, &keys).Error
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	done := tx.Exec("DELETE FROM "+t.name+" WHERE forget_after <= ? AND "+t.key+" IN ?", now, keys)
	return done.RowsAffected, done.Error
}
