package application

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// keptClients is a directory that notes the clients in use and their host tokens.
type keptClients struct {
	oneClient
	ids []string
	by  []oauth.Fingerprint
}

func (k *keptClients) Keep(id oauth.ClientID, by oauth.Fingerprint) {
	k.ids, k.by = append(k.ids, id.String()), append(k.by, by)
}

func (k *keptClients) Connected(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	return k.Client(ctx, id, "")
}

var _ = Describe("Marking clients as in use", Label("C54"), func() {
	var kept *keptClients
	using := func(store oauth.Store) *Server {
		kept = &keptClients{}
		server := serverOver(store, func(*oauth.Config) {})
		server.ports.Clients = kept
		return server
	}

	It("marks a client for the host token that approved it, and not after the grant has ended", func(ctx SpecContext) {
		store := openStore()
		server := using(store)
		tokens := server.connect(ctx, "mcp")
		grant, err := store.Grant(ctx, tokens.Access.Grant())
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.ids).To(Equal([]string{clientID}))
		Expect(kept.by).To(Equal([]oauth.Fingerprint{grant.HostPrint()}))
		Expect(grant.HostPrint()).NotTo(BeZero())

		grant.End(oauth.EndedByHost, time.Now())
		server.keepClient(grant)
		Expect(kept.ids).To(HaveLen(1))
	})

	It("marks the clients with stored documents at the start, those that were checked last as used last",
		func(ctx SpecContext) {
			store := openStore()
			for i, name := range []string{"newer", "older"} {
				Expect(store.SaveClientDocument(ctx, oauth.ClientDocument{
					Kind:       oauth.MetadataDocument,
					URL:        "https://" + name + ".example/c",
					Owner:      oauth.Fingerprint{byte(i + 1)},
					CheckedAt:  time.Now().Add(-time.Duration(i) * time.Minute),
					FreshUntil: time.Now(),
				})).To(Succeed())
			}
			Expect(using(store).KeepClients(ctx)).To(Succeed())
			Expect(kept.ids).To(Equal([]string{"https://older.example/c", "https://newer.example/c"}))
			Expect(kept.by).To(Equal([]oauth.Fingerprint{{2}, {1}}))
		})

	It("leaves out clients that registered themselves, which have no document to fetch", Label("L7"), func() {
		registered := oauth.RestoreClientID("https://cms.example/oauth/clients/AAAA")
		server := using(openStore())
		server.settings.ClientID.Registered = "https://cms.example/oauth/clients/"
		server.keepClient(
			oauth.RestoreCode(oauth.CodeSnapshot{
				ClientID:  registered.String(),
				State:     oauth.IssuedCode,
				ExpiresAt: time.Now().Add(time.Hour),
				HostPrint: []byte("a fingerprint..."),
			}))
		Expect(kept.ids).To(BeEmpty())
	})
})
