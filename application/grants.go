package application

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// Grants iterates over all active grants and unredeemed codes, oldest first. The store has to be an
// oauth.AuthorizationLister.
func (s Operator) Grants(ctx context.Context) iter.Seq2[oauth.Connection, error] {
	return func(yield func(oauth.Connection, error) bool) {
		lister, lists := s.ports.Store.(oauth.AuthorizationLister)
		if !lists {
			err := errors.New("listing grants: the store does not implement oauth.AuthorizationLister")
			yield(oauth.Connection{}, err)
			return
		}
		now := s.now()
		for one, err := range lister.Authorizations(ctx) {
			if err != nil {
				yield(oauth.Connection{}, err)
				return
			}
			if shown, active := s.Settings.Connection(one, now); active && !yield(shown, nil) {
				return
			}
		}
	}
}

// EndGrant ends the grant or withdraws the code with the id, and returns how many were active.
func (s Operator) EndGrant(ctx context.Context, id string) (int, error) {
	if active, err := s.endAuthorization(ctx, id, oauth.EndedByOperator); err != nil || !active {
		return 0, err
	}
	s.store.awaitOthers(ctx, 1)
	return 1, nil
}

// EndGrantsOfTokenID is EndGrantsOf for the token with the Principal.TokenID. It reads all grants,
// so the store has to be an oauth.AuthorizationLister.
func (s Operator) EndGrantsOfTokenID(ctx context.Context, id string) (int, error) {
	if id == "" {
		return 0, errors.New("ending the grants of a token: its id is empty")
	}
	return s.EndGrants(ctx, func(c oauth.Connection) bool { return c.TokenID == id }, oauth.EndedByHost)
}

// EndGrants ends the active grants and withdraws the unredeemed codes for which chosen returns
// true, and returns how many it has ended.
func (s Operator) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool,
	reason oauth.EndReason) (all int, err error) {
	for shown, err := range s.Grants(ctx) {
		if err != nil {
			return all, err
		}
		if !chosen(shown) {
			continue
		}
		ended, err := s.endAuthorization(ctx, shown.ID, reason)
		if err != nil {
			return all, err
		}
		if ended {
			all++
		}
	}
	s.store.awaitOthers(ctx, all)
	return all, nil
}

// CheckIssuer refuses to start when there are active connections and each was made under another
// issuer: their clients would ask at an address where this server is not.
func (s Operator) CheckIssuer(ctx context.Context) error {
	if _, lists := s.ports.Store.(oauth.AuthorizationLister); !lists {
		return nil
	}
	elsewhere := ""
	for shown, err := range s.Grants(ctx) {
		if err != nil || s.Settings.MayHaveIssued(shown.Resource) {
			return err // nil for a connection of this issuer
		}
		elsewhere = shown.Resource.String()
	}
	if elsewhere == "" {
		return nil
	}
	return fmt.Errorf("the issuer is %s, but the connections in the store were made for %s and would be useless: set "+
		"issuer back to the address that they were made at; if the site has moved or that server is gone, run "+
		"\"pasteport grants end --all\" first, and people connect again", s.Settings.Issuer, elsewhere)
}

// enforceGrantLimit ends the surplus connections of a host token, but never newID. It only logs a
// failure, because the next approval ends the surplus.
func (s *core) enforceGrantLimit(ctx context.Context, newID string, host oauth.HostToken) {
	ended := 0
	prints, err := s.Settings.Fingerprints(host)
	var all oauth.Authorizations
	if err == nil {
		all, err = s.authorizationsOf(ctx, prints)
	}
	if surplus := all.Surplus(newID, s.Settings.Limits.MaxGrantsPerToken, s.now()); err == nil && len(surplus) > 0 {
		ended, err = s.endConnections(ctx, prints, oauth.EndedByLimit, func(id string) bool { return surplus[id] })
	}
	if err != nil {
		s.ports.Logger.ErrorContext(ctx, "cannot end the connections beyond the limit of a token", "grant", newID,
			"error", err)
	}
	for range ended {
		s.ports.Limited.Observe(quota.Grants, quota.Evicted)
	}
}

// authorizationsOf returns the issued codes and active grants of a host token by its fingerprints
// under all server secrets, with last uses that the store may not have yet.
func (s *core) authorizationsOf(ctx context.Context, prints []oauth.Fingerprint) (all oauth.Authorizations,
	err error) {
	for _, print := range slices.Backward(prints) { // the oldest secret first, and so the oldest connections
		found, err := s.store.Find(ctx, oauth.Selection{Host: print[:]})
		if err != nil {
			return all, err
		}
		all.Codes, all.Grants = append(all.Codes, found.Codes...), append(all.Grants, found.Grants...)
	}
	for _, grant := range all.Grants {
		grant.RecordUse(s.uses.of(grant.ID()))
	}
	return all, nil
}

// Sweep deletes expired rows and old attempts to connect, and returns their number. No answer to a
// client depends on it.
func (s Operator) Sweep(ctx context.Context) (int, error) {
	now := s.now()
	rows, err := s.store.DeleteExpired(ctx, now)
	trace, keeps := s.ports.Store.(attempt.Log)
	if err != nil || !keeps {
		return rows, err
	}
	attempts, err := trace.ForgetAttempts(ctx, now.Add(-attempt.Memory), attempt.Capacity)
	return rows + attempts, err
}
