package application

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
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
		"client_id": {clientID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {scope},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	})
	Expect(err).NotTo(HaveOccurred())
	return consent
}

var _ = Describe("Checking pasted tokens in turns", Label("B20"), func() {
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
	// paste sends n forms at once from an address, and returns the error of each.
	paste := func(ctx context.Context, n int, address string) chan error {
		GinkgoHelper()
		by := oauth.RequesterAt(netip.MustParseAddr(address), server.settings.Limits)
		answers := make(chan error, n)
		for i := range n {
			consent := server.consent(ctx, "")
			go func() {
				_, err := server.Approve(ctx, consent, Pasted{Token: "token-" + strconv.Itoa(i), By: by})
				answers <- err
			}()
		}
		return answers
	}
	nowChecking := func() int32 { return checking.Load() }

	It("checks the share of an address at once, and others of it in turns, and leaves places for other addresses", func(ctx SpecContext) {
		colleagues := paste(ctx, 20, office)
		Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(3))
		Eventually(server.judge.pasted.Waiting).WithContext(ctx).Should(Equal(17))
		another := paste(ctx, 1, home)
		Eventually(nowChecking).WithContext(ctx).Should(BeEquivalentTo(4))
		Expect(server.judge.pasted.Waiting()).To(Equal(17))
		release()
		Eventually(another).WithContext(ctx).Should(Receive(Succeed()))
		for range 20 {
			Eventually(colleagues).WithContext(ctx).Should(Receive(Succeed()))
		}
	})

	It("refuses for a second when too many tokens of one address wait, and counts what was slowed and refused", func(ctx SpecContext) {
		const fit = 3 * waitingPerPlaceAndAddress
		var effects sync.Map
		server.ports.Limited = func(limit oauth.Limit, effect oauth.LimitEffect) {
			effects.Store(string(limit)+" "+string(effect), true)
		}
		colleagues := paste(ctx, 3+fit, office)
		Eventually(server.judge.pasted.Waiting).WithContext(ctx).Should(Equal(fit))
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
})

var _ = Describe("Settling a pasted token", Label("B6"), func() {
	DescribeTable("counts", func(ctx SpecContext, err error, hungUp bool, outcome oauth.Outcome) {
		asked, hangUp := context.WithCancel(ctx)
		defer hangUp()
		if hungUp {
			hangUp()
		}
		Expect(outcomeOf(asked, err)).To(Equal(outcome))
	},
		Entry("a right token as right, even for a client that hung up", nil, true, oauth.Right),
		Entry("one that the site does not know as wrong", oauth.Refuse(oauth.WrongHostToken, "B8", ""), false, oauth.Wrong),
		Entry("one that the site cannot check as undecided", oauth.Refuse(oauth.HostTokenNotVerifiable, "B9", ""), false, oauth.Undecided),
		Entry("one whose client hung up during the check as abandoned", oauth.Refuse(oauth.HostTokenNotVerifiable, "B9", ""), true, oauth.Abandoned),
		Entry("one that was never checked as undecided", oauth.RefuseFor(queueFullWait, oauth.TooManyGuesses, "B20", ""), true, oauth.Undecided),
	)
})
