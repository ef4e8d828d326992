package application

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// keptClients is a directory that notes the approved clients.
type keptClients struct {
	oneClient
	ids []string
}

func (k *keptClients) Keep(_ context.Context, id oauth.ClientID) { k.ids = append(k.ids, id.String()) }

func (k *keptClients) Connected(ctx context.Context, id oauth.ClientID) (*client.Metadata, error) {
	return k.Client(ctx, id, "")
}

var _ = Describe("Keeping the documents of clients", Label("C58"), func() {
	It("keeps that of a client at its approval", func(ctx SpecContext) {
		kept := &keptClients{}
		server := serverOver(openStore(), func(*oauth.Config) {})
		server.ports.Clients = kept
		server.connect(ctx, "mcp")
		Expect(kept.ids).To(Equal([]string{clientID}))
	})

	It("leaves out clients that registered themselves, which have no document to fetch",
		Label("L7"), func(ctx SpecContext) {
			kept := &keptClients{}
			server := serverOver(openStore(), func(*oauth.Config) {})
			server.ports.Clients = kept
			server.keepClient(ctx, oauth.RestoreClientID("https://cms.example/oauth/clients/AAAA"))
			Expect(kept.ids).To(BeEmpty())
		})
})
