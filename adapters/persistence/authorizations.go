package persistence

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// authorizationRows are the rows of some codes and grants.
type authorizationRows struct {
	codes  []stored[codeRow]
	grants []stored[grantRow]
}

var (
	issuedCodesOf = "SELECT " + codeColumns + " FROM authorization_codes WHERE host_print = ? AND state = '" +
		oauth.IssuedCode + "' ORDER BY created_at, id"
	grantsOf = "SELECT " + grantColumns + " FROM grants WHERE host_print = ? ORDER BY created_at, id"
)

// authorizationsOf reads the issued codes and all grants of a host token, the codes first: the
// grant of a code that was redeemed before its row was read is then among the grants, and a
// redemption after it changes the version of the code.
func (e engine) authorizationsOf(db *gorm.DB, host oauth.Fingerprint) (rows authorizationRows, err error) {
	if rows.codes, err = readRows(e, db, codeTable, issuedCodesOf, host[:]); err != nil {
		return rows, failed("finding the codes of a host token", err)
	}
	rows.grants, err = readRows(e, db, grantTable, grantsOf, host[:])
	return rows, failed("finding the grants of a host token", err)
}

func (r authorizationRows) restore() (all oauth.Authorizations) {
	for _, code := range r.codes {
		all.Codes = append(all.Codes, code.row.restore())
	}
	for _, grant := range r.grants {
		all.Grants = append(all.Grants, grant.row.restore())
	}
	return all
}

// AuthorizationsOf implements oauth.Store.
func (s *Store) AuthorizationsOf(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	ctx, done := s.detached(ctx)
	defer done()
	rows, err := s.engine.authorizationsOf(s.reader.WithContext(ctx), host)
	return rows.restore(), err
}

// UpdateAuthorizationsOf implements oauth.Store.
func (s *Store) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	return s.changeAll(ctx, func(tx *sqlite.Tx) error {
		rows, err := s.engine.authorizationsOf(tx.DB, host)
		if err != nil {
			return err
		}
		all := rows.restore()
		if err := change(all); err != nil {
			return err
		}
		return rows.swap(tx, all)
	})
}

// swap writes the changes to the codes and grants.
func (r authorizationRows) swap(tx *sqlite.Tx, all oauth.Authorizations) error {
	for i, code := range all.Codes {
		if err := swapCode(tx, r.codes[i], code); err != nil {
			return err
		}
	}
	for i, grant := range all.Grants {
		if _, err := swapGrant(tx, r.grants[i], grant); err != nil {
			return err
		}
	}
	return nil
}

func swapCode(tx *sqlite.Tx, before stored[codeRow], code *oauth.AuthorizationCode) error {
	after := codeRow(code.Snapshot())
	_, err := swap(tx, codeTable, before, &after, "updating a code")
	return err
}

// AddCode implements oauth.Store.
func (s *Store) AddCode(ctx context.Context, code *oauth.AuthorizationCode,
	supersede func(earlier *oauth.AuthorizationCode) error) error {
	row := codeRow(code.Snapshot())
	return s.change(ctx, func(tx *sqlite.Tx) error {
		err := insert(tx, codeTable, &row)
		if !isDuplicate(err) {
			return failed("adding a code", err)
		}
		earlier, err := s.engine.code(tx.DB, row.ID)
		if errors.Is(err, oauth.ErrNotFound) { // the sweep has deleted it meanwhile
			return failed("adding a code", mapper.ErrOvertaken)
		}
		if err != nil {
			return err
		}
		if err := supersede(earlier.row.restore()); err != nil {
			return err
		}
		_, err = swap(tx, codeTable, earlier, &row, "replacing a code")
		return err
	})
}

// Code implements oauth.Store.
func (s *Store) Code(ctx context.Context, id string) (*oauth.AuthorizationCode, error) {
	ctx, done := s.detached(ctx)
	defer done()
	found, err := s.engine.code(s.reader.WithContext(ctx), id)
	if err != nil {
		return nil, err
	}
	s.recentCodes.add(id, found)
	return found.row.restore(), nil
}

// RedeemCode implements oauth.Store.
func (s *Store) RedeemCode(ctx context.Context, id string,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	change := s.change
	if !s.engine.redeemsInOne {
		change = s.changeAll
	}
	return change(ctx, func(tx *sqlite.Tx) error {
		if recent, found := s.recentCodes.take(id); found {
			code := recent.row.restore()
			if grant, err := redeem(code); err == nil {
				err = s.writeRedemption(tx, recent, code, grant)
				if s.file == nil || !errors.Is(err, mapper.ErrOvertaken) { // a file does not run the change again
					return err
				}
			}
		}
		before, err := s.engine.code(tx.DB, id)
		if err != nil {
			return err
		}
		code := before.row.restore()
		grant, err := redeem(code)
		if err != nil {
			return err
		}
		return s.writeRedemption(tx, before, code, grant)
	})
}

func (s *Store) writeRedemption(tx *sqlite.Tx, before stored[codeRow], code *oauth.AuthorizationCode,
	grant *oauth.AccessGrant) error {
	if s.engine.redeemsInOne {
		return redeemInOne(tx, before, code, grant)
	}
	if err := swapCode(tx, before, code); err != nil {
		return err
	}
	return addGrant(tx, grant)
}

func addGrant(tx *sqlite.Tx, grant *oauth.AccessGrant) error {
	row := grantRow(grant.Snapshot())
	if err := insert(tx, grantTable, &row); err != nil {
		return failed("adding a grant", err)
	}
	tx.ChangedGrant(row.ID, &storedGrant{stored: stored[grantRow]{row, firstVersion}})
	return nil
}

// redeemInOne changes the code and adds its grant with one statement of PostgreSQL.
func redeemInOne(tx *sqlite.Tx, before stored[codeRow], code *oauth.AuthorizationCode, grant *oauth.AccessGrant) error {
	after, row := codeRow(code.Snapshot()), grantRow(grant.Snapshot())
	statement := mapper.NewStatement(tx.DB)
	statement.Write("WITH spent AS (")
	codeTable.WriteUpdate(statement, &before.row, &after, before.version)
	statement.Write(" RETURNING id) INSERT INTO grants (" + grantTable.ColumnList() + ") SELECT ")
	grantTable.WriteValues(statement, &row)
	statement.Write(" FROM spent")
	added, err := statement.Run(tx.DB)
	if err == nil && added == 0 {
		err = mapper.ErrOvertaken
	}
	return failed("redeeming a code", err)
}
