package persistence

import (
	"context"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Grant implements oauth.Store.
func (s *Store) Grant(ctx context.Context, id string) (*oauth.AccessGrant, error) {
	ctx, done := s.detached(ctx)
	defer done()
	found, err := grants.find(s.reader.WithContext(ctx), id)
	if err != nil {
		return nil, failed("finding a grant", err)
	}
	return oauth.RestoreGrant(found), nil
}

// UpdateGrant implements oauth.Store.
func (s *Store) UpdateGrant(ctx context.Context, known *oauth.AccessGrant,
	change func(*oauth.AccessGrant) error) error {
	return s.change(ctx, func(tx *gorm.DB) error {
		return fromKnown(tx, grants, known.Snapshot(), func(before oauth.GrantSnapshot) error {
			grant := oauth.RestoreGrant(before)
			if err := change(grant); err != nil {
				return err
			}
			return swapGrant(tx, before, grant)
		})
	})
}

// swapGrant writes what a change has changed, but for the last use.
func swapGrant(tx *gorm.DB, before oauth.GrantSnapshot, grant *oauth.AccessGrant) error {
	after := grant.Snapshot()
	after.LastUsedAt, after.LastUsedToken = before.LastUsedAt, before.LastUsedToken
	return failed("updating a grant", grants.swap(tx, before, after))
}

// authorizationRows are the rows of some codes and grants.
type authorizationRows struct {
	codes  []oauth.CodeSnapshot
	grants []oauth.GrantSnapshot
}

// authorizationsOf reads the issued codes and the active grants of a host token, the codes first:
// the grant of a code that was redeemed before its row was read is then among the grants, and a
// redemption after it changes the version of the code.
func authorizationsOf(db *gorm.DB, host oauth.Fingerprint) (rows authorizationRows, err error) {
	const ofHost = "host_print = ? AND state = ? ORDER BY created_at, id"
	if rows.codes, err = codes.read(db, ofHost, host[:], oauth.IssuedCode); err != nil {
		return rows, failed("finding the codes of a host token", err)
	}
	rows.grants, err = grants.read(db, ofHost, host[:], oauth.ActiveGrant)
	return rows, failed("finding the grants of a host token", err)
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

// AuthorizationsOf implements oauth.Store.
func (s *Store) AuthorizationsOf(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	ctx, done := s.detached(ctx)
	defer done()
	rows, err := authorizationsOf(s.reader.WithContext(ctx), host)
	return rows.restore(), err
}

// UpdateAuthorizationsOf implements oauth.Store.
func (s *Store) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		rows, err := authorizationsOf(tx, host)
		if err != nil {
			return err
		}
		all := rows.restore()
		if err := change(all); err != nil {
			return err
		}
		for i, code := range all.Codes {
			if err := codes.swap(tx, rows.codes[i], code.Snapshot()); err != nil {
				return failed("updating a code", err)
			}
		}
		for i, grant := range all.Grants {
			if err := swapGrant(tx, rows.grants[i], grant); err != nil {
				return err
			}
		}
		return nil
	})
}

// RecordUse implements oauth.Store.
func (s *Store) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(uses)), usesAtOnce) {
		values := make([]any, 0, 3*len(ids))
		for _, id := range ids {
			values = append(values, id, uses[id].At.UnixMilli(), int64(uses[id].Access))
		}
		rows := s.engine.useRow + strings.Repeat(" UNION ALL SELECT ?, ?, ?", len(ids)-1)
		err := s.change(ctx, func(tx *gorm.DB) error {
			_, err := execute(tx, s.engine.useHead+rows+s.engine.useTail, values...)
			return failed("recording the last uses of grants", err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// usesAtOnce is the largest number of rows in one statement.
const usesAtOnce = 400
