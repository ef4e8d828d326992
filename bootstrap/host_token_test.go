package bootstrap_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/domain/oauth"
)

// hostToken is the token that host.approve pastes.
const hostToken = "host-token"

// fakeVerifier is a verifier whose behaviour specs can change. At first it accepts tokens.
type fakeVerifier struct{ verify atomic.Value }

type verifyFunc func(token string) (oauth.Principal, error)

func newFakeVerifier() *fakeVerifier {
	m := &fakeVerifier{}
	m.set(accepting)
	return m
}

func (m *fakeVerifier) set(verify verifyFunc) { m.verify.Store(verify) }

// VerifyBearer implements oauth.BearerVerifier.
func (m *fakeVerifier) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	return m.verify.Load().(verifyFunc)(token)
}

func accepting(string) (oauth.Principal, error) { return oauth.Principal{Subject: "ada"}, nil }

func panicking(token string) (oauth.Principal, error) { panic("no answer for " + token) }

func unavailable(token string) (oauth.Principal, error) {
	return oauth.Principal{}, errors.New("the database is down, asked for " + token)
}

func refusing(string) (oauth.Principal, error) { return oauth.Principal{}, oauth.ErrUnknownBearer }

// beConsentPage matches the consent page after an outage of the verifier.
func beConsentPage() types.GomegaMatcher {
	return And(
		HaveField("Code", http.StatusServiceUnavailable),
		HaveField("Header()", And(HaveKey("Retry-After"), Not(HaveKey("Location")))),
		HaveField("Body.String()", And(
			ContainSubstring("This site cannot check tokens just now"), MatchRegexp(ticketField.String()),
			Not(ContainSubstring(hostToken)))),
	)
}

// beUnavailable matches a 503 after which a client keeps its tokens.
func beUnavailable() types.GomegaMatcher {
	return And(
		HaveField("Code", http.StatusServiceUnavailable),
		HaveField("Header()",
			And(HaveKeyWithValue("Retry-After", []string{"5"}),
				HaveKeyWithValue("Content-Type", []string{"application/json"}))),
		HaveField("Body.String()",
			And(ContainSubstring(`"error":"temporarily_unavailable"`), Not(ContainSubstring(hostToken)))),
	)
}

var _ = Describe("Verifying a host token", Label("J6", "J7", "B9", "D25"), func() {
	const issuer = "https://cms.example"
	const moreThanWrongGuesses = 6
	var site *fakeVerifier
	var hours *clock
	var server *host
	BeforeEach(func() {
		site, hours = newFakeVerifier(), &clock{}
		server = openHost(oauth.Config{Issuer: issuer, Verifier: site, Now: hours.now}, openStore(), nil)
	})

	// failWith approves and refreshes while the verifier fails, expects that nothing changes, and
	// then uses the grant again.
	failWith := func(ctx context.Context, verify verifyFunc, times int) {
		GinkgoHelper()
		tokens, code, form := tokensOf(server.exchange(server.code())), server.code(), server.ticket()
		site.set(verify)
		var asking sync.WaitGroup
		asking.Go(func() {
			defer GinkgoRecover()
			for range times {
				Expect(server.approve(form)).To(beConsentPage())
			}
		})
		asking.Go(func() {
			defer GinkgoRecover()
			Expect(server.refresh(tokens.Refresh)).To(beUnavailable())
		})
		asking.Wait()
		Expect(server.call(tokens.Access).Code).To(Equal(http.StatusOK))
		Expect(server.exchange(code).Code).To(Equal(http.StatusOK))

		site.set(accepting)
		hours.advance(time.Minute) // now the use of a replaced token would count as reuse
		next := server.refresh(tokens.Refresh)
		Expect(next.Code).To(Equal(http.StatusOK), next.Body.String())
		Expect(server.call(tokensOf(next).Access).Code).To(Equal(http.StatusOK))
		Expect(server.authz.EndGrantsOf(ctx, hostToken)).
			To(Equal(2), "a grant was made while the verifier was unavailable")
		Expect(server.approve(form).Code).To(Equal(http.StatusSeeOther))
	}

	DescribeTable("issues nothing, ends nothing and counts no guess while the verifier",
		Label("B6"), func(ctx SpecContext, verify verifyFunc) {
			failWith(ctx, verify, moreThanWrongGuesses)
		},
		Entry("panics", verifyFunc(panicking)),
		Entry("is unavailable", verifyFunc(unavailable)),
	)

	It("issues nothing and ends nothing while the verifier hangs", func(ctx SpecContext) {
		hanging := make(chan struct{})
		DeferCleanup(func() { close(hanging) })
		failWith(ctx, func(string) (oauth.Principal, error) {
			<-hanging
			return oauth.Principal{Subject: "too late"}, nil
		}, 1)
	}, SpecTimeout(time.Minute))

	DescribeTable("is not needed to end grants, also while the verifier",
		Label("J10", "N12"), func(ctx SpecContext, verify verifyFunc) {
			tokens := tokensOf(server.exchange(server.code()))
			site.set(verify)
			Expect(server.authz.EndGrantsOf(ctx, hostToken)).To(Equal(1))
			Expect(server.call(tokens.Access).Code).To(Equal(http.StatusUnauthorized))
			Expect(tokensOf(server.refresh(tokens.Refresh)).Error).To(Equal("invalid_grant"))
		},
		Entry("panics", verifyFunc(panicking)),
		Entry("is unavailable", verifyFunc(unavailable)),
	)
})
