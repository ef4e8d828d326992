package application

import (
	"context"
	"errors"
	"slices"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Grants returns all active grants and unredeemed codes, oldest first. The store has to be an oauth.AuthorizationLister.
func (s *Server) Grants(ctx context.Context) ([]oauth.Connection, error) {
	all, err := s.authorizations(ctx)
	return all.Connections(s.settings, s.now()), err
}

// EndGrants ends the active grants and withdraws the unredeemed codes for which chosen returns true, and returns their number.
func (s *Server) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error) {
	all, err := s.authorizations(ctx)
	if err != nil {
		return 0, err
	}
	var prints []oauth.Fingerprint
	ids, now := map[string]bool{}, s.now()
	for one := range all.All() {
		shown, active := s.settings.Connection(one, now)
		if !active || !chosen(shown) {
			continue
		}
		ids[one.ID()] = true
		if !slices.Contains(prints, one.HostPrint()) {
			prints = append(prints, one.HostPrint())
		}
	}
	return s.endConnections(ctx, prints, oauth.EndedByOperator, func(id string) bool { return ids[id] })
}

func (s *Server) authorizations(ctx context.Context) (oauth.Authorizations, error) {
	lister, lists := s.ports.Store.(oauth.AuthorizationLister)
	if !lists {
		return oauth.Authorizations{}, errors.New("listing grants: the store does not implement oauth.AuthorizationLister")
	}
	return lister.Authorizations(ctx)
}

// enforceGrantLimit ends the surplus connections of a host token after a new code was stored (J14). A failure is only logged: the next approval ends
// the surplus.
func (s *Server) enforceGrantLimit(ctx context.Context, made *oauth.AuthorizationCode) {
	ended, err := s.endSurplus(ctx, made)
	if err != nil {
		s.ports.Logger.ErrorContext(ctx, "cannot end the connections beyond the limit of a token", "grant", made.ID(), "error", err)
	}
	for range ended {
		s.ports.Limited.Observe(oauth.LimitGrants, oauth.LimitEvicted)
	}
}

func (s *Server) endSurplus(ctx context.Context, made *oauth.AuthorizationCode) (ended int, err error) {
	found, err := s.authorizationsOf(ctx, made.HostPrint())
	if err != nil {
		return 0, err
	}
	surplus := found.Surplus(made.ID(), s.settings.Limits.MaxGrantsPerToken, s.now())
	if len(surplus) == 0 {
		return 0, nil
	}
	return s.endAuthorizations(ctx, made.HostPrint(), oauth.EndedByLimit, func(id string) bool { return surplus[id] })
}

// authorizationsOf returns the codes and grants of a host token, with last uses that the store may not have yet.
func (s *Server) authorizationsOf(ctx context.Context, print oauth.Fingerprint) (oauth.Authorizations, error) {
	found, err := s.ports.Store.AuthorizationsOf(ctx, print)
	for _, grant := range found.Grants {
		grant.RecordUse(s.uses.of(grant.ID()))
	}
	return found, err
}

// Sweep deletes expired rows and old trace steps (H6) and returns their number. No answer to a client depends on it (I21).
func (s *Server) Sweep(ctx context.Context) (int, error) {
	now := s.now()
	rows, err := s.ports.Store.DeleteExpired(ctx, now)
	if err != nil || s.ports.Trace == nil {
		return rows, err
	}
	steps, err := s.ports.Trace.ForgetSteps(ctx, now.Add(-trace.Memory), trace.Capacity)
	return rows + steps, err
}
