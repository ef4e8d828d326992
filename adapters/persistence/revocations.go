package persistence

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.EndWatcher = (*Store)(nil)

// Revocations are read in pages, so that no query is long when an operator ends many grants at once. A page begins after the last row of the page
// before; keys order the rows of one millisecond.
const (
	endedPage   = 1000
	endedGrants = `SELECT id AS name, ended_at AS at FROM grants
		WHERE ended_at >= ? AND (ended_at > ? OR id > ?) ORDER BY ended_at, id LIMIT ?`
	revokedSecrets = `SELECT digest AS name, revoked_at AS at FROM secrets
		WHERE revoked_at >= ? AND (revoked_at > ? OR digest > ?) ORDER BY revoked_at, digest LIMIT ?`
)

// EndedSince implements oauth.EndWatcher.
func (s *Store) EndedSince(ctx context.Context, since time.Time) (ended oauth.Ended, err error) {
	reader := s.reader.WithContext(ctx)
	if ended.Grants, err = endedAfter(reader, endedGrants, since, ""); err != nil {
		return oauth.Ended{}, failed("asking which grants have ended", err)
	}
	tokens, err := endedAfter(reader, revokedSecrets, since, []byte{})
	if err != nil {
		return oauth.Ended{}, failed("asking which tokens were revoked", err)
	}
	for _, token := range tokens {
		ended.Tokens = append(ended.Tokens, oauth.Digest(token))
	}
	return ended, nil
}

// endedAfter returns the names of the rows that ended at the time since or later. least sorts before every name.
func endedAfter[K string | []byte](db *gorm.DB, page string, since time.Time, least K) (names []K, err error) {
	type row struct {
		Name K
		At   int64
	}
	for last := (row{least, since.UnixMilli()}); ; {
		var rows []row
		if err := db.Raw(page, last.At, last.At, last.Name, endedPage).Scan(&rows).Error; err != nil {
			return nil, err
		}
		for _, r := range rows {
			names = append(names, r.Name)
		}
		if len(rows) < endedPage {
			return names, nil
		}
		last = rows[len(rows)-1]
	}
}
