package application

import (
	"context"
	"crypto/rand"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

// witness answers for the other replicas.
type witness func(ctx context.Context) error

func (w witness) VerifySecret(ctx context.Context, _ []oauth.Fingerprint) error { return w(ctx) }

var _ = Describe("Asking the other replicas about the server secret", Label("J6", "I22"), func() {
	var server *Server
	answering := func(answer witness) { server.ports.Witness = answer }
	newer := func(context.Context) error { return oauth.ErrOtherSecret }
	same := func(context.Context) error { return nil }
	BeforeEach(func() {
		server = serverOver(openStore(), func(*oauth.Config) {})
		answering(same)
	})
	// foreign is a token that a replica with another server secret has issued.
	foreign := func() string {
		GinkgoHelper()
		ring := seal.NewKeyRing(seal.FixedSecrets([][]byte{[]byte("the secret of another replica, 32 bytes and more")}))
		entropy, err := oauth.NewEntropy(rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		secret, err := oauth.NewSecret(oauth.AccessTokenSecret, "0123456789abcdef0123456789abcdef", 1, entropy, ring)
		Expect(err).NotTo(HaveOccurred())
		return secret.Reveal()
	}
	present := func(text string) error {
		_, err := server.parseSecret(oauth.AccessTokenSecret, text)
		return err
	}

	It("makes an unknown token an outage while another replica has a newer one", func(ctx SpecContext) {
		Expect(present(foreign())).To(MatchError(oauth.ErrNotFound))
		answering(newer)
		Expect(server.AgreeOnSecret(ctx)).To(MatchError(oauth.ErrOtherSecret))
		Expect(present(foreign())).To(MatchError(oauth.ErrUnavailable))
		answering(func(context.Context) error { return oauth.ErrUnavailable })
		Expect(server.AgreeOnSecret(ctx)).To(MatchError(oauth.ErrUnavailable))
		Expect(present(foreign())).To(MatchError(oauth.ErrUnavailable), "nothing new is known")
		answering(same)
		Expect(server.AgreeOnSecret(ctx)).To(Succeed())
		Expect(present(foreign())).To(MatchError(oauth.ErrNotFound))
	})

	DescribeTable("asks anew before it ends a grant, and keeps it when", Label("D25"),
		func(ctx SpecContext, answer witness) {
			grant, err := server.store.Grant(ctx, server.connect(ctx, "").Access.Grant())
			Expect(err).NotTo(HaveOccurred())
			answering(answer)
			Expect(server.endByLostKey(ctx, grant, oauth.RefuseUnknownGrant())).To(MatchError(oauth.ErrUnavailable))
			answering(same)
			Expect(server.endByLostKey(ctx, grant, oauth.RefuseUnknownGrant())).
				To(MatchError(oauth.RefuseUnknownGrant()))
		},
		Entry("another replica has a newer secret", witness(newer)),
		Entry("none answers", witness(func(context.Context) error { return oauth.ErrUnavailable })),
	)
})
