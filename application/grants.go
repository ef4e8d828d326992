package application

import (
	"context"
	"errors"
	"slices"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Grants returns the living grants of everybody, oldest first, for the operator.
func (s *Server) Grants(ctx context.Context) (living []oauth.Connection, err error) {
	_, err = s.chosen(ctx, func(shown oauth.Connection) bool {
		living = append(living, shown)
		return false
	})
	return living, err
}

// EndGrants ends the chosen ones of the living grants, at once, and returns how many of them were still alive then.
func (s *Server) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error) {
	grants, err := s.chosen(ctx, chosen)
	if err != nil {
		return 0, err
	}
	var prints []oauth.Fingerprint
	ids := map[string]bool{}
	for _, grant := range grants {
		ids[grant.ID()] = true
		if !slices.Contains(prints, grant.HostPrint()) {
			prints = append(prints, grant.HostPrint())
		}
	}
	return s.endConnections(ctx, prints, oauth.EndedByOperator, func(g *oauth.AccessGrant) bool { return ids[g.ID()] })
}

func (s *Server) chosen(ctx context.Context, chosen func(oauth.Connection) bool) (found []*oauth.AccessGrant, err error) {
	lister, lists := s.ports.Store.(oauth.GrantLister)
	if !lists {
		return nil, errors.New("listing grants: this store cannot, it is no oauth.GrantLister")
	}
	grants, err := lister.Grants(ctx)
	if err != nil {
		return nil, err
	}
	now := s.now()
	for _, grant := range grants {
		if shown, alive := grant.Connection(now); alive && chosen(shown) {
			found = append(found, grant)
		}
	}
	return found, nil
}
