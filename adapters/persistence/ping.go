package persistence

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// pingName is the name of the counter that Ping writes.
var pingName = sha256.Sum256([]byte("pasteport readiness"))

// pingKept is how long the row of the last probe stays before DeleteExpired deletes it.
const pingKept = time.Minute

// Ping does what a request does, so that it fails when requests would: it reads the server secret, writes a row that is on the disk when it
// returns, and finds a secret and its grant. It chooses the secret at random, so that repeated probes cover the whole file.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.KeptSecrets(); err != nil {
		return err
	}
	row := counterRow{Name: pingName[:], EndsAt: time.Now().Add(pingKept)}
	err := s.change(ctx, func(tx *sqlite.Tx) error {
		err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
		if err == nil {
			tx.WroteRow()
		}
		return failed("writing", err)
	})
	if err != nil {
		return err
	}
	ctx, done := s.detached(ctx)
	defer done()
	return findAny(s.engine, s.reader.WithContext(ctx))
}

// findAny reads from the disk: the write before it has made SQLite drop its cached pages.
func findAny(e engine, db *gorm.DB) error {
	var from oauth.Digest
	_, _ = rand.Read(from[:]) // crypto/rand ends the process rather than fail
	var next [][]byte
	err := db.Raw("SELECT digest FROM secrets WHERE digest >= ? ORDER BY digest LIMIT 1", from[:]).Scan(&next).Error
	if err == nil && len(next) == 0 { // from is greater than every digest
		err = db.Raw("SELECT digest FROM secrets ORDER BY digest LIMIT 1").Scan(&next).Error
	}
	if err != nil {
		return failed("reading secrets", err)
	}
	for _, digest := range next {
		from = oauth.Digest(digest)
	}
	if _, err := e.finds(db, from); !errors.Is(err, oauth.ErrNotFound) {
		return err
	}
	return nil
}
