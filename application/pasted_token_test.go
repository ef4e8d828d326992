package application

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// consent returns the consent page of a new request.
func (s *Server) consent(ctx context.Context, scope string) *Consent {
	GinkgoHelper()
	sum := sha256.Sum256([]byte(verifier))
	consent, err := s.Authorize.RequestAuthorization(ctx, oauth.Parameters{
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

var _ = Describe("Verifying pasted tokens", Label("B20"), func() {
	var server *Server
	var checking atomic.Int32
	var release func()
	BeforeEach(func() {
		server = serverOver(openStore(), func(c *oauth.Config) { c.Limits.MaxVerifications = 4 })
		checking.Store(0)
		gate := make(chan struct{})
		release = sync.OnceFunc(func() { close(gate) })
		DeferCleanup(release)
		server.answering(func(ctx context.Context, token string) (oauth.Principal, error) {
			checking.Add(1)
			select {
			case <-gate:
			case <-ctx.Done():
			}
			if token == "wrong" {
				return oauth.Principal{}, oauth.ErrUnknownBearer
			}
			return oauth.Principal{Subject: "ada"}, ctx.Err()
		})
	})
	// paste sends a form with a token, and returns its error.
	paste := func(ctx context.Context, token, address string) chan error {
		GinkgoHelper()
		by := quota.RequesterAt(netip.MustParseAddr(address), server.Settings.Limits.UnlimitedNetworks)
		consent, answer := server.consent(context.Background(), ""), make(chan error, 1)
		go func() {
			_, err := server.Authorize.Approve(ctx, consent, Pasted{Token: token, By: by})
			answer <- err
		}()
		return answer
	}
	beginChecking := func(ctx context.Context, tokens int) {
		GinkgoHelper()
		Eventually(checking.Load).WithContext(ctx).Should(BeEquivalentTo(tokens))
	}

	It("finishes a verification when the client hangs up, and repeats its result",
		Label("B6"), NodeTimeout(20*time.Second), func(ctx SpecContext) {
			impatient, hangUp := context.WithCancel(ctx)
			answer := paste(impatient, "wrong", "203.0.113.7")
			beginChecking(ctx, 1)
			hangUp()
			release()
			var err error
			Eventually(answer).WithContext(ctx).Should(Receive(&err))
			kind, _ := oauth.KindOf(err)
			Expect(kind).To(Equal(oauth.WrongHostToken))
			Eventually(paste(ctx, "wrong", "198.51.100.7")).WithContext(ctx).Should(Receive(&err))
			Expect(err).To(MatchError(ContainSubstring("a moment ago")))
			Expect(checking.Load()).To(BeEquivalentTo(1))
		})
})

var _ = Describe("Reporting the check of a pasted token", Label("B6"), func() {
	DescribeTable("reports", func(ctx SpecContext, err error, result quota.Result) {
		server := serverOver(openStore(), func(*oauth.Config) {})
		told := make(reports, 1)
		server.ports.Lanes = told
		host, parseErr := oauth.ParseHostToken("token")
		Expect(parseErr).NotTo(HaveOccurred())
		checked := server.enterLane(ctx, quota.Guess{}, host, func(context.Context) error { return err })
		if err == nil {
			Expect(checked).To(Succeed())
		} else {
			Expect(checked).To(MatchError(err))
		}
		Expect(<-told).To(Equal(result))
	},
		Entry("a right token", nil, quota.Right),
		Entry("one that the site does not know", oauth.Refuse(oauth.WrongHostToken, "B8", ""), quota.Wrong),
		Entry("one that the site cannot check", oauth.Refuse(oauth.HostTokenNotVerifiable, "B9", ""),
			quota.Undecided),
	)

	It("reports a token without connections as wrong, also one that the site knows, and returns none",
		func(ctx SpecContext) {
			server := serverOver(openStore(), func(*oauth.Config) {})
			told := make(reports, 1)
			server.ports.Lanes = told
			Expect(server.Connections.Find(ctx, Pasted{Token: "host-token"})).To(HaveField("Active", BeEmpty()))
			Expect(<-told).To(Equal(quota.Wrong))
		})
})

var _ = Describe("The deadline of an approval", Label("B20"), func() {
	It("is before the server closes the connection, and holds for the verifier also when the client hangs up",
		func(ctx SpecContext) {
			server := serverOver(openStore(), func(*oauth.Config) {})
			lanes := make(deadlines, 1)
			server.ports.Lanes = lanes
			verifying := make(deadlines, 2)
			server.answering(func(ctx context.Context, _ string) (oauth.Principal, error) {
				verifying.note(ctx)
				return oauth.Principal{Subject: "ada"}, nil
			})
			Expect(server.Authorize.Approve(ctx, server.consent(ctx, ""), Pasted{Token: "host-token"})).Error().
				To(Succeed())
			Expect(<-lanes).To(BeTemporally("<", time.Now().Add(55*time.Second)), "the server waits 60 s")
			first, confirmed := <-verifying, <-verifying
			Expect(confirmed).To(BeTemporally(">=", first))

			hurried, cancel := context.WithTimeout(ctx, 4*time.Second)
			defer cancel()
			soon, _ := hurried.Deadline()
			Expect(server.Authorize.Approve(hurried, server.consent(ctx, ""), Pasted{Token: "another"})).Error().
				To(Succeed())
			Expect(<-lanes).To(Equal(soon))
			Expect(<-verifying).To(Equal(soon))
			Expect(<-verifying).To(Equal(soon))
		})
})

// deadlines are those of the contexts that lanes or a verifier get.
type deadlines chan time.Time

func (d deadlines) note(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	d <- deadline
}

func (d deadlines) Enter(ctx context.Context, _ quota.Guess) (func(quota.Result), error) {
	d.note(ctx)
	return func(quota.Result) {}, nil
}

func (deadlines) Remember(oauth.Fingerprint, string) {}

var _ = Describe("Knowing a token as right", Label("B6"), func() {
	DescribeTable("comes also from", func(ctx SpecContext, check func(context.Context, *Server, *oauth.Tokens) error) {
		server := serverOver(openStore(), func(c *oauth.Config) { c.HostTokenInUse = true })
		tokens := server.connect(ctx, "mcp offline_access")
		restarted := limits.NewLanes(1, time.Now, nil)
		server.ports.Lanes = restarted
		Expect(check(ctx, server, tokens)).To(Succeed())
		by := quota.RequesterAt(netip.MustParseAddr("203.0.113.7"), server.Settings.Limits.UnlimitedNetworks)
		for i := range 2 { // the wrong token, and the turn of this second
			wrong := quota.Guess{By: by, Token: oauth.Fingerprint{byte(i)}, AtOnce: true}
			leave, err := restarted.Enter(ctx, wrong)
			Expect(err).NotTo(HaveOccurred())
			leave(quota.Wrong)
		}
		host, err := oauth.ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		right := quota.Guess{By: by, Resource: server.Settings.Resources[0].Resource.String(), AtOnce: true}
		right.Token, err = server.Settings.Keys.Fingerprint(host)
		Expect(err).NotTo(HaveOccurred())
		Expect(restarted.Enter(ctx, right)).Error().NotTo(HaveOccurred())
	},
		Entry("a refresh", func(ctx context.Context, s *Server, t *oauth.Tokens) error {
			_, err := s.refresh(ctx, t.Refresh)
			return err
		}),
		Entry("a check of a token in use", func(ctx context.Context, s *Server, t *oauth.Tokens) error {
			return s.Tokens.VerifyAfterRefusal(ctx, t.Access.Reveal(), s.Settings.Resources[0].Resource)
		}),
	)
})

// reports are the results that lanes get.
type reports chan quota.Result

func (r reports) Enter(context.Context, quota.Guess) (func(quota.Result), error) {
	return func(result quota.Result) { r <- result }, nil
}

func (r reports) Remember(oauth.Fingerprint, string) {}
