package persistence

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

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
