package application

import (
	"context"
	"slices"

	"github.com/pasteport/pasteport/domain/oauth"
)

// keepClient marks a client as in use for the host token (C54). A grant that has ended has no fingerprint of a host token.
func (s *Server) keepClient(of oauth.Authorization) {
	keeper, keeps := s.ports.Clients.(oauth.ClientKeeper)
	if by := of.HostPrint(); keeps && by != (oauth.Fingerprint{}) {
		keeper.Keep(of.Client(), by)
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

// KeepClients marks the clients with the most active grants as in use if the store is an oauth.ClientLister. Call it once after the start.
func (s *Server) KeepClients(ctx context.Context) error {
	keeper, keeps := s.ports.Clients.(oauth.ClientKeeper)
	lister, lists := s.ports.Store.(oauth.ClientLister)
	if !keeps || !lists {
		return nil
	}
	clients, err := lister.Clients(ctx, s.now(), maxKept)
	for _, id := range slices.Backward(clients) { // the directory evicts the last one last
		keeper.Keep(id, oauth.Fingerprint{})
	}
	return err
}
