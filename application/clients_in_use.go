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

// maxKept bounds the clients that are marked as in use at the start.
const maxKept = 10_000

// KeepClients marks the clients with most living grants as in use, if the store can list them. Call it once after the start.
func (s *Server) KeepClients(ctx context.Context) error {
	_, keeps := s.ports.Clients.(oauth.ClientKeeper)
	lister, lists := s.ports.Store.(oauth.ClientLister)
	if !keeps || !lists {
		return nil
	}
	clients, err := lister.Clients(ctx, s.now(), maxKept)
	for _, id := range clients {
		s.keepClient(id)
	}
	return err
}
