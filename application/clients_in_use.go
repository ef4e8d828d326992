package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// keepClient marks a client as in use (C54).
func (s *Server) keepClient(id oauth.ClientID) {
	if keeper, keeps := s.ports.Clients.(oauth.ClientKeeper); keeps {
		keeper.Keep(id)
	}
}

// connectedClient returns the document of a client that has a grant (C56).
func (s *Server) connectedClient(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	if keeper, keeps := s.ports.Clients.(oauth.ClientKeeper); keeps {
		return keeper.Connected(ctx, id)
	}
	return s.ports.Clients.Client(ctx, id, "")
}

// KeepClients marks every client with living grants as in use, if the store can list grants. Call it once after the start.
func (s *Server) KeepClients(ctx context.Context) error {
	_, keeps := s.ports.Clients.(oauth.ClientKeeper)
	_, lists := s.ports.Store.(oauth.GrantLister)
	if !keeps || !lists {
		return nil
	}
	grants, err := s.chosen(ctx, func(oauth.Connection) bool { return true })
	for _, grant := range grants {
		s.keepClient(grant.Client())
	}
	return err
}
