package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// AmendConnection names or narrows one of the sealed connections, and returns all of them. It
// refuses with InvalidTicket, ExpiredTicket, NothingLeft, and InvalidRequest for a wrong label.
func (s *Server) AmendConnection(ctx context.Context, sealed, id string, by oauth.Amendment) (Connections, error) {
	prints, host, err := oauth.OpenConnections(sealed, s.settings, s.now())
	if err != nil {
		return Connections{}, err
	}
	for _, print := range prints {
		if _, err := s.amend(ctx, print, id, by); err != nil {
			return Connections{}, err
		}
	}
	return s.activeConnections(ctx, prints, host)
}

// AmendGrants names or narrows the active grants and the unredeemed codes for which chosen returns
// true, and returns their number.
func (s *Server) AmendGrants(ctx context.Context, chosen func(oauth.Connection) bool,
	by oauth.Amendment) (int, error) {
	return s.changeGrants(ctx, chosen, func(one oauth.Authorization) (bool, error) {
		return s.amend(ctx, one.HostPrint(), one.ID(), by)
	})
}

// amend amends the code or grant with the id, and returns false if there is none. The next request
// of the client is checked against what is left: no replica remembers a grant.
func (s *Server) amend(ctx context.Context, print oauth.Fingerprint, id string,
	by oauth.Amendment) (amended bool, err error) {
	var left *oauth.Connection
	now := s.now()
	err = s.ports.Store.UpdateAuthorizationsOf(ctx, print, func(found oauth.Authorizations) (err error) {
		left, err = found.Amend(id, by, s.settings, now)
		return err
	})
	if err != nil || left == nil {
		return false, err
	}
	s.audit(ctx, "grant_amended", "grant", id, "scope", left.Scopes.String(), "ends", left.EndsAtLatest)
	return true, nil
}
