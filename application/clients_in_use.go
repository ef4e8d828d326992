package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// keepClient tells the directory that a client is in use (C54).
func (s *Server) keepClient(id oauth.ClientID) {
	if keeper, keeps := s.ports.Clients.(oauth.ClientKeeper); keeps {
		keeper.Keep(id)
	}
}

// connected returns the document of a client that has a grant.
func (s *Server) connected(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	if keeper, keeps := s.ports.Clients.(oauth.ClientKeeper); keeps {
		return keeper.Connected(ctx, id)
	}
	return s.ports.Clients.Client(ctx, id, "")
}

// KeepClients tells the directory which clients have living grants, where the store can list them. Call it once after the start.
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
