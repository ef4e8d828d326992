package storespec

import (
	"cmp"
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Acts are what package application does with a store.
type Acts struct{ oauth.Store }

// On returns the acts with a store.
func On(store oauth.Store) Acts { return Acts{store} }

// AddCode adds a code, and asks supersede whether it replaces an earlier one with its id.
func (a Acts) AddCode(ctx context.Context, code *oauth.AuthorizationCode,
	supersede func(earlier *oauth.AuthorizationCode) error) error {
	of := oauth.Selection{Code: code.ID(), Known: &oauth.Authorizations{}}
	return a.Change(ctx, of, func(found *oauth.Authorizations) error {
		for _, earlier := range found.Codes {
			if err := supersede(earlier); err != nil {
				return err
			}
		}
		found.Codes = []*oauth.AuthorizationCode{code}
		return nil
	})
}

// Code returns the code with the id.
func (a Acts) Code(ctx context.Context, id string) (*oauth.AuthorizationCode, error) {
	found, err := a.Find(ctx, oauth.Selection{Code: id})
	if err != nil || len(found.Codes) == 0 {
		return nil, cmp.Or(err, oauth.ErrNotFound)
	}
	return found.Codes[0], nil
}

// RedeemCode changes a code and adds its grant.
func (a Acts) RedeemCode(ctx context.Context, id string,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return a.redeem(ctx, oauth.Selection{Code: id}, redeem)
}

func (a Acts) redeem(ctx context.Context, of oauth.Selection,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return a.Change(ctx, of, func(found *oauth.Authorizations) error {
		if len(found.Codes) == 0 {
			return oauth.ErrNotFound
		}
		grant, err := redeem(found.Codes[0])
		if err != nil {
			return err
		}
		found.Grants = append(found.Grants, grant)
		return nil
	})
}

// Grant returns the grant with the id.
func (a Acts) Grant(ctx context.Context, id string) (*oauth.AccessGrant, error) {
	found, err := a.Find(ctx, oauth.Selection{Grant: id})
	if err != nil || len(found.Grants) == 0 {
		return nil, cmp.Or(err, oauth.ErrNotFound)
	}
	return found.Grants[0], nil
}

// UpdateGrant changes a grant.
func (a Acts) UpdateGrant(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
	return a.update(ctx, oauth.Selection{Grant: id}, change)
}

func (a Acts) update(ctx context.Context, of oauth.Selection, change func(*oauth.AccessGrant) error) error {
	return a.Change(ctx, of, func(found *oauth.Authorizations) error {
		if len(found.Grants) == 0 {
			return oauth.ErrNotFound
		}
		return change(found.Grants[0])
	})
}

// AuthorizationsOf returns the issued codes and the active grants of a host token.
func (a Acts) AuthorizationsOf(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	return a.Find(ctx, oauth.Selection{Host: host[:]})
}

// UpdateAuthorizationsOf changes the issued codes and the active grants of a host token.
func (a Acts) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	return a.Change(ctx, oauth.Selection{Host: host[:]}, func(found *oauth.Authorizations) error {
		return change(*found)
	})
}
