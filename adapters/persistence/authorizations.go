package persistence

import (
	"context"

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
