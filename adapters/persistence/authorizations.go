package persistence

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// authorizationRows are the rows of some codes and grants.
type authorizationRows struct {
	codes  []codeRow
	grants []grantRow
}

const (
	issuedCodesOf = " FROM authorization_codes WHERE host_print = ? AND state = '" + oauth.IssuedCode + "' ORDER BY created_at, id"
	grantsOf      = " FROM grants WHERE host_print = ? ORDER BY created_at, id"
)

// authorizationsOf reads the issued codes and all grants of a host token, the codes first: a redemption that holds the lock of its code has then
// committed its grant.
func (e engine) authorizationsOf(db *gorm.DB, host oauth.Fingerprint, lock bool) (rows authorizationRows, err error) {
	if rows.codes, err = readRows(e, db, codeTable, e.selectBy(db, "SELECT "+codeColumns+issuedCodesOf, lock), host[:]); err != nil {
		return rows, failed("finding the codes of a host token", err)
	}
	rows.grants, err = readRows(e, db, grantTable, e.selectBy(db, "SELECT "+grantColumns+grantsOf, lock), host[:])
	return rows, failed("finding the grants of a host token", err)
}

func (r authorizationRows) restore() (all oauth.Authorizations) {
	for _, row := range r.codes {
		all.Codes = append(all.Codes, row.restore())
	}
	for _, row := range r.grants {
		all.Grants = append(all.Grants, row.restore())
	}
	return all
}

// AuthorizationsOf implements oauth.Store.
func (s *Store) AuthorizationsOf(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	ctx, done := s.detached(ctx)
	defer done()
	rows, err := s.engine.authorizationsOf(s.reader.WithContext(ctx), host, false)
	return rows.restore(), err
}

// UpdateAuthorizationsOf implements oauth.Store.
func (s *Store) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error {
	return s.change(ctx, func(tx *sqlite.Tx) error {
		rows, err := s.engine.authorizationsOf(tx.DB, host, true)
		if err != nil {
			return err
		}
		all := rows.restore()
		if err := change(all); err != nil {
			return err
		}
		return rows.update(tx, all)
	})
}

// update writes the changes to the codes and grants.
func (r authorizationRows) update(tx *sqlite.Tx, all oauth.Authorizations) error {
	for i, code := range all.Codes {
		if err := rewriteCode(tx, &r.codes[i], code); err != nil {
			return err
		}
	}
	for i, grant := range all.Grants {
		if err := update(tx, &secretWithGrant{grant: &r.grants[i]}, grant); err != nil {
			return err
		}
	}
	return nil
}

// Authorizations implements oauth.AuthorizationLister.
func (s *Store) Authorizations(ctx context.Context) (oauth.Authorizations, error) {
	var rows authorizationRows
	oldest := s.reader.WithContext(ctx).Order("created_at, id").Session(&gorm.Session{})
	if err := oldest.Find(&rows.codes).Error; err != nil {
		return oauth.Authorizations{}, failed("listing the codes", err)
	}
	err := oldest.Find(&rows.grants).Error
	return rows.restore(), failed("listing the grants", err)
}

// AddCode implements oauth.Store.
func (s *Store) AddCode(ctx context.Context, code *oauth.AuthorizationCode, supersede func(earlier *oauth.AuthorizationCode) error) error {
	row := codeRow(code.Snapshot())
	return s.change(ctx, func(tx *sqlite.Tx) error { return s.addCode(tx, &row, supersede) })
}

// addCode looks for an earlier code before it inserts, because an error ends the transaction of a server. In a file it inserts first.
func (s *Store) addCode(tx *sqlite.Tx, row *codeRow, supersede func(earlier *oauth.AuthorizationCode) error) error {
	if !s.engine.server {
		if err := insert(tx, codeTable, row); !isDuplicate(err) {
			return failed("adding a code", err)
		}
	}
	earlier, err := s.engine.code(tx.DB, "id", row.ID, true)
	if errors.Is(err, oauth.ErrNotFound) {
		return overtaken(insert(tx, codeTable, row), "adding a code")
	}
	if err != nil {
		return err
	}
	if err := supersede(earlier.restore()); err != nil {
		return err
	}
	return failed("replacing a code", rewrite(tx, codeTable, &earlier, row)) // in place, so that a redemption that waits for the row finds it
}

// Code implements oauth.Store.
func (s *Store) Code(ctx context.Context, code oauth.Digest) (*oauth.AuthorizationCode, error) {
	ctx, done := s.detached(ctx)
	defer done()
	row, err := s.engine.code(s.reader.WithContext(ctx), "digest", code[:], false)
	if err != nil {
		return nil, err
	}
	return row.restore(), nil
}

// RedeemCode implements oauth.Store.
func (s *Store) RedeemCode(ctx context.Context, code oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return s.change(ctx, func(tx *sqlite.Tx) error {
		before, err := s.engine.code(tx.DB, "digest", code[:], true)
		if err != nil {
			return err
		}
		redeemed := before.restore()
		grant, err := redeem(redeemed)
		if err != nil {
			return err
		}
		if err := rewriteCode(tx, &before, redeemed); err != nil {
			return err
		}
		return addGrant(tx, grant)
	})
}

func rewriteCode(tx *sqlite.Tx, before *codeRow, code *oauth.AuthorizationCode) error {
	after := codeRow(code.Snapshot())
	return failed("updating a code", rewrite(tx, codeTable, before, &after))
}

func addGrant(tx *sqlite.Tx, grant *oauth.AccessGrant) error {
	row, secrets := rowsOf(grant)
	if err := insert(tx, grantTable, &row); err != nil {
		return failed("adding a grant", err)
	}
	tx.ChangedGrant(row.ID, cacheEntries(&row, secrets))
	return addSecrets(tx, secrets)
}
