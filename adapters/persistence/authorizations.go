package persistence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// authorizationRows are the rows of some codes and grants.
type authorizationRows struct {
	codes  []oauth.CodeSnapshot
	grants []oauth.GrantSnapshot
}

// find reads the rows of a selection. It reads the codes of a host token before the grants: a code
// that was redeemed before it was read has its grant among the grants, and a later redemption
// changes the version of the code.
func find(db *gorm.DB, of oauth.Selection) (rows authorizationRows, err error) {
	const ofHost = "host_print = ? AND state = ? ORDER BY created_at, id"
	switch {
	case of.Code != "":
		rows.codes, err = codes.read(db, "id = ?", of.Code)
	case of.Grant != "":
		rows.grants, err = grants.read(db, "id = ?", of.Grant)
	default:
		rows.codes, err = codes.read(db, ofHost, of.Host, oauth.IssuedCode)
		if err == nil {
			rows.grants, err = grants.read(db, ofHost, of.Host, oauth.ActiveGrant)
		}
	}
	return rows, failed("finding codes and grants", err)
}

func (r authorizationRows) restore() (all oauth.Authorizations) {
	for _, code := range r.codes {
		all.Codes = append(all.Codes, oauth.RestoreCode(code))
	}
	for _, grant := range r.grants {
		all.Grants = append(all.Grants, oauth.RestoreGrant(grant))
	}
	return all
}

func snapshots(all oauth.Authorizations) (rows authorizationRows) {
	for _, code := range all.Codes {
		rows.codes = append(rows.codes, code.Snapshot())
	}
	for _, grant := range all.Grants {
		rows.grants = append(rows.grants, grant.Snapshot())
	}
	return rows
}

// Find implements oauth.Store.
func (s *Store) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	ctx, done := s.detached(ctx)
	defer done()
	rows, err := find(s.reader.WithContext(ctx), of)
	return rows.restore(), err
}

// Change implements oauth.Store. It begins with what the caller knows, and reads the newest rows
// when that is refused or overtaken.
func (s *Store) Change(ctx context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	return s.change(ctx, func(db *gorm.DB) error {
		var refused error
		var known authorizationRows
		if of.Known != nil {
			known = snapshots(*of.Known)
			refused = changeRows(db, known, change)
			// A newer state would not avoid an outage, after which PostgreSQL refuses the rest of a
			// transaction.
			isOutage := errors.Is(refused, oauth.ErrUnavailable) && !errors.Is(refused, errOvertaken)
			if refused == nil || isOutage {
				return refused
			}
		}
		newest, err := find(db, of)
		if err != nil {
			return err
		}
		if refused != nil && !errors.Is(refused, errOvertaken) && reflect.DeepEqual(newest, known) {
			return refused // change would refuse the same rows again
		}
		return changeRows(db, newest, change)
	})
}

// changeRows applies change to rows and writes what it has changed.
func changeRows(db *gorm.DB, before authorizationRows, change func(*oauth.Authorizations) error) error {
	all := before.restore()
	if err := change(&all); err != nil {
		return err
	}
	after := snapshots(all)
	for i := range min(len(before.grants), len(after.grants)) { // only RecordUse writes the last use
		was, is := before.grants[i], &after.grants[i]
		is.LastUsedAt, is.LastUsedToken = was.LastUsedAt, was.LastUsedToken
	}
	write := func(tx *gorm.DB) error {
		if err := codes.write(tx, before.codes, after.codes); err != nil {
			return err
		}
		return grants.write(tx, before.grants, after.grants)
	}
	if len(after.codes)+len(after.grants) == 1 { // on a server, one statement is a transaction
		return write(db)
	}
	return inTransaction(db, write)
}

const (
	recordUse = "UPDATE grants SET last_used_at = CASE WHEN last_used_at > ? THEN last_used_at ELSE ? END, " +
		"last_used_token = CASE WHEN last_used_token > ? THEN last_used_token ELSE ? END WHERE id = ?"
	usesAtOnce = 400 // in one transaction, so that others may write between two
)

// RecordUse implements oauth.UseRecorder.
func (s *Store) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(uses)), usesAtOnce) {
		err := s.transaction(ctx, func(tx *gorm.DB) error {
			for _, id := range ids {
				at, access := uses[id].At.UnixMilli(), int64(uses[id].Access)
				if _, err := execute(tx, recordUse, at, at, access, access, id); err != nil {
					return failed("recording the last use of a grant", err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var _ oauth.AuthorizationLister = (*Store)(nil)

// Authorizations implements oauth.AuthorizationLister, in the order of the ids, which begin with
// the time. It reads the codes first, which are few because they live for minutes: if a code is
// redeemed after the page of its grant was read, the code is listed.
func (s *Store) Authorizations(ctx context.Context) iter.Seq2[oauth.Authorization, error] {
	return func(yield func(oauth.Authorization, error) bool) {
		reader := s.reader.WithContext(ctx)
		issued, err := codes.read(reader, "state = ? ORDER BY id", oauth.IssuedCode)
		if err != nil {
			yield(nil, failed("listing the codes", err))
			return
		}
		for grant, err := range grants.each(reader) {
			if err != nil {
				yield(nil, failed("listing the grants", err))
				return
			}
			for ; len(issued) > 0 && issued[0].ID <= grant.ID; issued = issued[1:] {
				// With the id of the grant, the code was redeemed meanwhile.
				if issued[0].ID < grant.ID && !yield(oauth.RestoreCode(issued[0]), nil) {
					return
				}
			}
			if !yield(oauth.RestoreGrant(grant), nil) {
				return
			}
		}
		for _, code := range issued {
			if !yield(oauth.RestoreCode(code), nil) {
				return
			}
		}
	}
}

var _ oauth.EndWatcher = (*Store)(nil)

// EndedSince implements oauth.EndWatcher.
func (s *Store) EndedSince(ctx context.Context, since time.Time) (oauth.Ended, error) {
	ended := oauth.Ended{Grants: map[string]oauth.EndedGrant{}}
	err := grants.scan(s.reader.WithContext(ctx), func(row oauth.GrantSnapshot) {
		if !row.EndedAt.IsZero() {
			grant := oauth.EndedGrant{Reason: oauth.EndReason(row.EndReason)}
			copy(grant.HostPrint[:], row.HostPrint)
			ended.Grants[row.ID] = grant
			return
		}
		for _, token := range row.AccessTokens {
			if !token.RevokedAt.Before(since) && !token.RevokedAt.IsZero() {
				ended.Tokens = append(ended.Tokens, token.Digest)
			}
		}
	}, "revoked_at >= ?", since.UnixMilli())
	return ended, failed("asking which grants have ended", err)
}

// list is a field for a column with a list in JSON, "" when it is empty. SCHEMA.md describes the
// members. encoding/json would write a digest as 32 numbers, and take four times as long to read
// them (2026-11-29).
type list[T any] struct{ of *[]T }

func (l list[T]) Value() (driver.Value, error) {
	if len(*l.of) == 0 {
		return "", nil
	}
	encoded, err := json.Marshal(*l.of)
	return string(encoded), err
}

func (l list[T]) Scan(value any) error {
	*l.of = nil
	var text sql.NullString
	if err := text.Scan(value); err != nil || text.String == "" {
		return err
	}
	if err := json.Unmarshal([]byte(text.String), l.of); err != nil {
		return fmt.Errorf("reading tokens: %w", err)
	}
	return nil
}
