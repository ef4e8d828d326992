package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

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
	found, err := s.ports.Store.AuthorizationsOf(ctx, made.HostPrint())
	if err != nil {
		return 0, err
	}
	surplus := found.Surplus(made.ID(), s.settings.Limits.MaxGrantsPerToken, s.now())
	if len(surplus) == 0 {
		return 0, nil
	}
	return s.endUnder(ctx, made.HostPrint(), oauth.EndedByLimit, func(id string) bool { return surplus[id] })
}
