package persistence

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// AddCode implements oauth.Store.
func (s *Store) AddCode(ctx context.Context, code *oauth.AuthorizationCode,
	supersede func(earlier *oauth.AuthorizationCode) error) error {
	return s.change(ctx, func(tx *gorm.DB) error {
		err := codes.add(tx, code.Snapshot())
		if !isDuplicate(err) {
			return failed("adding a code", err)
		}
		earlier, err := codes.find(tx, code.ID())
		if errors.Is(err, gorm.ErrRecordNotFound) { // the sweep has deleted it meanwhile
			return failed("adding a code", errOvertaken)
		}
		if err != nil {
			return failed("finding a code", err)
		}
		if err := supersede(oauth.RestoreCode(earlier)); err != nil {
			return err
		}
		return failed("replacing a code", codes.swap(tx, earlier, code.Snapshot()))
	})
}

// Code implements oauth.Store.
func (s *Store) Code(ctx context.Context, id string) (*oauth.AuthorizationCode, error) {
	ctx, done := s.detached(ctx)
	defer done()
	found, err := codes.find(s.reader.WithContext(ctx), id)
	if err != nil {
		return nil, failed("finding a code", err)
	}
	return oauth.RestoreCode(found), nil
}

// RedeemCode implements oauth.Store.
func (s *Store) RedeemCode(ctx context.Context, known *oauth.AuthorizationCode,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		return fromKnown(tx, codes, known.Snapshot(), func(before oauth.CodeSnapshot) error {
			code := oauth.RestoreCode(before)
			grant, err := redeem(code)
			if err != nil {
				return err
			}
			if err := codes.swap(tx, before, code.Snapshot()); err != nil {
				return failed("updating a code", err)
			}
			return failed("adding a grant", grants.add(tx, grant.Snapshot()))
		})
	})
}

// fromKnown runs change on the state that its caller has read, and on the newest row if that state
// is refused or overtaken. A row that is not known has version 0.
func fromKnown[R any](tx *gorm.DB, in table[R], known R, change func(before R) error) (err error) {
	version := *in.version(&known)
	if version > 0 {
		if err = change(known); err == nil || isFinal(err) {
			return err
		}
	}
	newest, findErr := in.find(tx, *in.id(&known))
	switch {
	case findErr != nil:
		return failed("finding the newest state", findErr)
	case *in.version(&newest) == version: // which change has refused
		return err
	}
	return change(newest)
}

// isFinal reports an error of a statement that a newer state would not avoid, and after which
// PostgreSQL refuses the rest of a transaction.
func isFinal(err error) bool {
	return (errors.Is(err, oauth.ErrUnavailable) || errors.Is(err, oauth.ErrDuplicate)) && !errors.Is(err, errOvertaken)
}
