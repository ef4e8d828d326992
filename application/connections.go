package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// EndGrantsOf ends every grant that was made with the host token, at once; a site calls it when it revokes one of its tokens
// (J10). It returns how many were alive.
func (s *Server) EndGrantsOf(ctx context.Context, hostToken string) (int, error) {
	host, err := oauth.ParseHostToken(hostToken)
	if err != nil {
		return 0, err
	}
	print, err := s.settings.Keys.Fingerprint(host)
	if err != nil {
		return 0, err
	}
	ended := map[string]bool{}
	now := s.now()
	err = s.ports.Store.UpdateGrantsOf(ctx, print, func(g *oauth.AccessGrant) error {
		if g.End(oauth.EndedByHost, now) {
			ended[g.ID()] = true
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for grant := range ended {
		s.announceEnd(ctx, grant, oauth.EndedByHost)
	}
	return len(ended), nil
}
