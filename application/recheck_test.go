package application

import (
	"bytes"
	"context"
	"crypto/rand"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

// callsInFlight returns how many goroutines wait in a singleflight.Group, or do its work.
func callsInFlight() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("singleflight.(*Group).Do("))
}

// witness answers for the other replicas.
type witness func(ctx context.Context) error

func (w witness) VerifySecret(ctx context.Context, _ []oauth.Fingerprint) error { return w(ctx) }

var _ = Describe("Asking the other replicas about the server secret", Label("J6", "I22"), func() {
	var server *Server
	var asked atomic.Int32
	answering := func(answer witness) {
		server.ports.Witness = witness(func(ctx context.Context) error {
			asked.Add(1)
			return answer(ctx)
		})
	}
	newer := func(context.Context) error { return oauth.ErrOtherSecret }
	same := func(context.Context) error { return nil }
	BeforeEach(func() {
		server = serverOver(openStore(), func(*oauth.Config) {})
		asked.Store(0)
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
	present := func(ctx context.Context, text string) error {
		_, err := server.parseSecret(ctx, oauth.AccessTokenSecret, text)
		return err
	}

	It("lets every token wait for an answer that another one has asked for", func(ctx SpecContext) {
		gate := make(chan struct{})
		answering(func(context.Context) error { <-gate; return oauth.ErrOtherSecret })
		var waiting sync.WaitGroup
		for range 8 {
			waiting.Go(func() {
				defer GinkgoRecover()
				Expect(present(ctx, foreign())).To(MatchError(oauth.ErrUnavailable))
			})
		}
		Eventually(asked.Load).WithContext(ctx).Should(BeEquivalentTo(1))
		Eventually(callsInFlight).WithContext(ctx).Should(Equal(8))
		close(gate)
		waiting.Wait()
		Expect(asked.Load()).To(BeEquivalentTo(1))
	}, SpecTimeout(10*time.Second))

	It("does not end with the request that has asked", func(ctx SpecContext) {
		answering(func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return oauth.ErrOtherSecret
		})
		gone, cancel := context.WithCancel(ctx)
		cancel()
		Expect(present(gone, foreign())).To(MatchError(oauth.ErrUnavailable))
	})

	It("asks again right after an outage", func(ctx SpecContext) {
		answering(func(context.Context) error { return oauth.ErrUnavailable })
		Expect(present(ctx, foreign())).To(MatchError(oauth.ErrNotFound))
		answering(newer)
		Expect(present(ctx, foreign())).To(MatchError(oauth.ErrUnavailable))
	})

	DescribeTable("asks anew before it ends a grant, and keeps it when", Label("D25"),
		func(ctx SpecContext, answer witness) {
			grant := oauth.UnreadGrant(server.connect(ctx, "").Access.Grant())
			Expect(present(ctx, foreign())).To(MatchError(oauth.ErrNotFound))
			answering(answer)
			Expect(server.endByLostKey(ctx, grant, oauth.RefuseUnknownGrant())).To(MatchError(oauth.ErrUnavailable))
			answering(same)
			Expect(server.endByLostKey(ctx, grant, oauth.RefuseUnknownGrant())).
				To(MatchError(oauth.RefuseUnknownGrant()))
		},
		Entry("another replica has a newer secret", witness(newer)),
		Entry("none answers", witness(func(context.Context) error { return oauth.ErrUnavailable })),
	)

	Describe("is left out", Label("G6"), func() {
		DescribeTable("for a text", func(ctx SpecContext, text string) {
			Expect(present(ctx, text)).To(MatchError(oauth.ErrNotFound))
			Expect(asked.Load()).To(BeZero())
		},
			Entry("of another form", "x"),
			Entry("that is empty", ""),
			Entry("of another kind of token", "ppr_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
		)

		It("when an access token is revoked", func(ctx SpecContext) {
			tokens := server.connect(ctx, "")
			Expect(server.Revoke(ctx, oauth.Credentials{Client: clientID}, tokens.Access.Reveal())).To(Succeed())
			Expect(asked.Load()).To(BeZero())
		})
	})
})
