package application

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// consent returns the consent page of a new request.
func (s *Server) consent(ctx context.Context, scope string) *Consent {
	GinkgoHelper()
	sum := sha256.Sum256([]byte(verifier))
	consent, err := s.RequestAuthorization(ctx, oauth.Parameters{
		"client_id":             {clientID},
		"redirect_uri":          {callback},
		"response_type":         {"code"},
		"scope":                 {scope},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	})
	Expect(err).NotTo(HaveOccurred())
	return consent
}

var _ = Describe("Queueing the verification of pasted tokens", Label("B20"), func() {
	const office, home = "203.0.113.7", "198.51.100.7"
	var server *Server
	var checking atomic.Int32
	var release func()
	BeforeEach(func() {
		server = serverOver(openStore(), func(c *oauth.Config) {
			c.Limits.MaxVerifications, c.Limits.MaxVerificationsPerAddress = 4, 3
		})
		checking.Store(0)
		gate := make(chan struct{})
		release = sync.OnceFunc(func() { close(gate) })
		DeferCleanup(release)
		server.answering(func(ctx context.Context, _ string) (oauth.Principal, error) {
			checking.Add(1)
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return oauth.Principal{Subject: "ada"}, ctx.Err()
		})
	})
	// pasteEach sends a form for each token at once from an address, and returns the error of each.
	pasteEach := func(ctx context.Context, address string, tokens ...string) chan error {
		GinkgoHelper()
		by := oauth.RequesterAt(netip.MustParseAddr(address), server.settings.Limits)
		answers := make(chan error, len(tokens))
		for _, token := range tokens {
			consent := server.consent(context.Background(), "")
			go func() {
				_, err := server.Approve(ctx, consent, Pasted{Token: token, By: by})
				answers <- err
			}()
		}
		return answers
	}
	paste := func(ctx context.Context, n int, address string) chan error {
		GinkgoHelper()
		var tokens []string
		for i := range n {
			tokens = append(tokens, "token-"+strconv.Itoa(i))
		}
		return pasteEach(ctx, address, tokens...)
	}
	limit := func(all, perAddress int) {
		server.settings.Limits.MaxVerifications, server.settings.Limits.MaxVerificationsPerAddress = all, perAddress
	}
	nowChecking := func() int32 { return checking.Load() }

	It("verifies the share of one address at once, queues the rest, and leaves places for other addresses",
		func(ctx SpecContext) {
			colleagues := paste(ctx, 20, office)
			Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(3))
			Eventually(server.waiting).WithContext(ctx).Should(Equal(17))
			another := paste(ctx, 1, home)
			Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(4))
			Expect(server.waiting()).To(Equal(17))
			release()
			Eventually(another).WithContext(ctx).Should(Receive(Succeed()))
			for range 20 {
				Eventually(colleagues).WithContext(ctx).Should(Receive(Succeed()))
			}
		})

	It("refuses for a second when too many tokens of one address wait, and counts what was slowed and refused",
		func(ctx SpecContext) {
			const fit = 3 * waitingPerSlotAndAddress
			var effects sync.Map
			server.ports.Limited = func(limit oauth.Limit, effect oauth.LimitEffect) {
				effects.Store(string(limit)+" "+string(effect), true)
			}
			colleagues := paste(ctx, 3+fit, office)
			Eventually(server.waiting).WithContext(ctx).Should(Equal(fit))
			var err error
			Eventually(paste(ctx, 1, office)).WithContext(ctx).Should(Receive(&err))
			var refusal *oauth.Error
			Expect(errors.As(err, &refusal)).To(BeTrue())
			kind, _ := oauth.KindOf(err)
			Expect(kind).To(Equal(oauth.TooManyGuesses))
			Expect(refusal.RetryAfter).To(Equal(queueFullWait))
			Expect(oauth.RuleOf(err)).To(Equal("B20"))
			release()
			for range 3 + fit {
				Eventually(colleagues).WithContext(ctx).Should(Receive(Succeed()))
			}
			_, refused := effects.Load("verifications refused")
			Expect(refused).To(BeTrue())
			_, slowed := effects.Load("verifications slowed")
			Expect(slowed).To(BeTrue())
		})

	It("does not let one flooding token delay another token of the same address", func(ctx SpecContext) {
		limit(8, 6)
		server.answering(server.guard.verifier.(site))
		flood := pasteEach(ctx, office, slices.Repeat([]string{"flood"}, 200)...)
		Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(slotsPerToken))
		Eventually(server.waiting).WithContext(ctx).Should(Equal(6 * waitingPerSlotAndAddress / waitingTokenDivisor))
		colleague := pasteEach(ctx, office, "colleague")
		Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(slotsPerToken + 1))
		colleagues := paste(ctx, 5, office)
		Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(6), "the share of the address")
		release()
		Eventually(colleague).WithContext(ctx).Should(Receive(Succeed()))
		for range 5 {
			Eventually(colleagues).WithContext(ctx).Should(Receive(Succeed()))
		}
		for range 200 {
			Eventually(flood).WithContext(ctx).Should(Receive())
		}
	})

	Describe("when the site knows no token", func() {
		BeforeEach(func() {
			known := server.guard.verifier.(site)
			limit(1, 1)
			server.answering(func(ctx context.Context, token string) (oauth.Principal, error) {
				_, _ = known(ctx, token)
				return oauth.Principal{}, oauth.ErrUnknownBearer
			})
		})

		It("finishes a verification when the client hangs up, and repeats its result",
			Label("B6"), func(ctx SpecContext) {
				impatient, hangUp := context.WithCancel(ctx)
				answer := pasteEach(impatient, office, "wrong")
				Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(1))
				hangUp()
				Consistently(answer).WithContext(ctx).ShouldNot(Receive())
				release()
				var err error
				Eventually(answer).WithContext(ctx).Should(Receive(&err))
				kind, _ := oauth.KindOf(err)
				Expect(kind).To(Equal(oauth.WrongHostToken))
				Eventually(pasteEach(ctx, home, "wrong")).WithContext(ctx).Should(Receive(&err))
				kind, _ = oauth.KindOf(err)
				Expect(kind).To(Equal(oauth.WrongHostToken))
				Expect(nowChecking()).To(BeEquivalentTo(1))
			})

		It("repeats the reason of no other token", func(ctx SpecContext) {
			server.answering(func(_ context.Context, token string) (oauth.Principal, error) {
				return oauth.Principal{}, oauth.UnknownBearer("what is wrong with " + token)
			})
			var err error
			for _, token := range []string{"one", "another", "one"} {
				Eventually(pasteEach(ctx, office, token)).WithContext(ctx).Should(Receive(&err))
			}
			Expect(err).To(MatchError(And(
				ContainSubstring("a moment ago"), Not(ContainSubstring("what is wrong with another")))))
		})

		It("admits a token again after it has waited", Label("B6", "B18"), func(ctx SpecContext) {
			answers := paste(ctx, 8, office)
			Eventually(server.waiting).WithContext(ctx).Should(Equal(7))
			release()
			demanded := 0
			for range 8 {
				var err error
				Eventually(answers).WithContext(ctx).Should(Receive(&err))
				var demand *oauth.ProofDemand
				if errors.As(err, &demand) {
					demanded++
				}
			}
			Expect(demanded).To(Equal(3))
			Expect(nowChecking()).To(BeEquivalentTo(5))
		})
	})
})

var _ = Describe("Counting the outcome of a pasted token", Label("B6"), func() {
	DescribeTable("counts", func(err error, outcome oauth.GuessResult) { Expect(resultOf(err)).To(Equal(outcome)) },
		Entry("a right token as right", nil, oauth.GuessRight),
		Entry("one that the site does not know as wrong", oauth.Refuse(oauth.WrongHostToken, "B8", ""),
			oauth.GuessWrong),
		Entry("one that the site cannot check as undecided", oauth.Refuse(oauth.HostTokenNotVerifiable, "B9", ""),
			oauth.GuessUndecided),
	)
})
