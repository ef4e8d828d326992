package application

import (
	"context"
	"errors"
	"slices"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Grants returns all living grants and unredeemed codes, oldest first. The store has to be an oauth.AuthorizationLister.
func (s *Server) Grants(ctx context.Context) ([]oauth.Connection, error) {
	all, err := s.authorizations(ctx)
	return all.Connections(s.now()), err
}

// EndGrants ends the chosen living grants and returns how many were still alive.
func (s *Server) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error) {
	all, err := s.authorizations(ctx)
	if err != nil {
		return 0, err
	}
	var prints []oauth.Fingerprint
	ids, now := map[string]bool{}, s.now()
	for one := range all.All() {
		shown, alive := one.Connection(now)
		if !alive || !chosen(shown) {
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
