package persistence

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"gorm.io/gorm"
)

// Each statement deletes up to 500 rows whose forget_after has passed. expiredSecrets also finds refresh tokens of an earlier version, whose
// forget_after is the absolute_end of their grant. The list of rows is a derived table, because MySQL cannot otherwise select from the table that it
// deletes from. The condition is repeated outside the list: after waiting for a row lock, a server checks only the outer condition again.
const (
	deleteSecrets  = "DELETE FROM secrets WHERE digest IN (SELECT digest FROM (%s) AS batch)"
	expiredSecrets = `SELECT digest FROM secrets WHERE forget_after <= @now
		UNION ALL SELECT digest FROM grants {join} secrets ON secrets.forget_after = absolute_end AND grant_id = id WHERE grants.forget_after <= @now LIMIT 500`
	deleteCodes = `DELETE FROM authorization_codes WHERE forget_after <= @now AND id IN
		(SELECT id FROM (SELECT id FROM authorization_codes WHERE forget_after <= @now LIMIT 500) AS batch)`
	deleteAssertions = `DELETE FROM used_assertions WHERE forget_after <= @now AND digest IN
		(SELECT digest FROM (SELECT digest FROM used_assertions WHERE forget_after <= @now LIMIT 500) AS batch)`
	deleteDocuments = `DELETE FROM client_documents WHERE forget_after <= @now AND digest IN
		(SELECT digest FROM (SELECT digest FROM client_documents WHERE forget_after <= @now LIMIT 500) AS batch)`
	deleteCounters = `DELETE FROM counters WHERE ends_at <= @now AND name IN
		(SELECT name FROM (SELECT name FROM counters WHERE ends_at <= @now LIMIT 500) AS batch)`
)

// The refresh tokens of a grant form a chain from the newest to its predecessors, so that they need no index. One transaction deletes 500 of them;
// a grant is deleted with the last of its tokens.
const (
	grantsAtOnce = 100
	tokensAtOnce = 500
	tokenChains  = `WITH RECURSIVE family (grant_id, digest, predecessor, step) AS (
		SELECT grant_id, digest, predecessor, 1 FROM secrets WHERE digest IN @newest
		UNION ALL SELECT older.grant_id, older.digest, older.predecessor, step + 1 FROM family JOIN secrets AS older ON older.digest = family.predecessor WHERE step < @steps)
		SELECT grant_id, digest, predecessor, step FROM family`
)

// emptySuccessors clears the successor boxes whose grace window is over (J9).
const emptySuccessors = `UPDATE grants SET successor_box = NULL WHERE successor_box IS NOT NULL AND grace_end <= @now AND id IN (SELECT id FROM (SELECT id FROM grants
	WHERE successor_box IS NOT NULL AND grace_end <= @now LIMIT 500) AS batch)`

// DeleteExpired implements oauth.Store. Each batch is one transaction, so that other writers can run in between.
func (s *Store) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	deleted := 0
	for _, batch := range []batch{
		expired(deleteCodes), expired(s.engine.deleteExpiredSecrets()), s.deleteGrants, expired(deleteAssertions), expired(deleteDocuments), expired(deleteCounters),
	} {
		rows, err := s.inBatches(ctx, batch, now)
		deleted += rows
		if err != nil {
			return deleted, err
		}
	}
	_, err := s.inBatches(ctx, expired(emptySuccessors), now)
	return deleted, err
}

// batch deletes some of the expired rows and returns their number.
type batch func(tx *gorm.DB, now time.Time) (int, error)

func expired(statement string) batch {
	return func(tx *gorm.DB, now time.Time) (int, error) {
		done := tx.Exec(statement, sql.Named("now", now.UnixMilli()))
		return int(done.RowsAffected), done.Error
	}
}

// inBatches repeats a batch until it deletes nothing, and returns the number of deleted rows.
func (s *Store) inBatches(ctx context.Context, batch batch, now time.Time) (deleted int, err error) {
	for rows := 1; rows > 0; {
		err := s.transaction(ctx, func(tx *gorm.DB) (err error) {
			rows, err = batch(tx, now)
			return failed("deleting expired rows", err)
		})
		if err != nil {
			return deleted, err
		}
		deleted += rows
	}
	return deleted, nil
}

func expiredGrants(tx *gorm.DB, now time.Time, grants *[]grantRow) *gorm.DB {
	return tx.Select("id", "refresh_digest").Limit(grantsAtOnce).Find(grants, "forget_after <= ?", now.UnixMilli())
}

// deleteGrants deletes some expired grants with their refresh tokens. A grant with more tokens than one batch can delete keeps the older ones
// until the next batch.
func (s *Store) deleteGrants(tx *gorm.DB, now time.Time) (int, error) {
	var grants []grantRow
	err := expiredGrants(s.engine.locking(tx), now, &grants).Error
	if err != nil || len(grants) == 0 {
		return 0, err
	}
	tokens, others, err := refreshTokens(tx, grants)
	if err != nil {
		return 0, err
	}
	for grant, newest := range others {
		if err := tx.Exec("UPDATE grants SET refresh_digest = ? WHERE id = ?", newest, grant).Error; err != nil {
			return 0, err
		}
	}
	ids := make([]string, 0, len(grants))
	for _, grant := range grants {
		if _, stays := others[grant.ID]; !stays {
			ids = append(ids, grant.ID)
		}
	}
	err = errors.Join(tx.Delete(&secretRow{}, "digest IN ?", tokens).Error, tx.Delete(&grantRow{}, "id IN ?", ids).Error)
	return len(tokens) + len(ids), err
}

// refreshTokens returns the newest refresh tokens of the grants, and for each grant with more of them the newest of the others.
func refreshTokens(tx *gorm.DB, grants []grantRow) (tokens [][]byte, others map[string][]byte, err error) {
	newest := make([][]byte, 0, len(grants))
	for _, grant := range grants {
		newest = append(newest, grant.RefreshDigest)
	}
	var found []struct {
		GrantID             string
		Digest, Predecessor []byte
		Step                int
	}
	others = map[string][]byte{}
	steps := tokensAtOnce / len(grants)
	err = tx.Raw(tokenChains, sql.Named("newest", newest), sql.Named("steps", steps)).Scan(&found).Error
	for _, token := range found {
		tokens = append(tokens, token.Digest)
		if token.Step == steps && token.Predecessor != nil {
			others[token.GrantID] = token.Predecessor
		}
	}
	return tokens, others, err
}
