package bootstrap_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap"
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
})

const callAdmin = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"admin","arguments":{}}}`

var _ = Describe("Changes while the verifier is called", Label("I17", "I18"), func() {
	const issuer = "https://cms.example"
	var site *fakeVerifier
	var hours *clock
	var server *host
	open := func(config oauth.Config, options ...bootstrap.MCPOption) {
		site, hours = newFakeVerifier(), &clock{}
		config.Issuer, config.Verifier, config.Now = issuer, site, hours.now
		server = openHost(config, openStore(), nil, options...)
	}

	It("leave no grant when the site revokes its token during an approval", Label("J1", "J10"), func(ctx SpecContext) {
		open(oauth.Config{})
		form := server.ticket()
		site.set(func(token string) (oauth.Principal, error) {
			site.set(refusing)
			Expect(server.authz.EndGrantsOf(ctx, token)).To(BeZero())
			return accepting(token)
		})
		Expect(server.approve(form).Code).To(Equal(http.StatusForbidden))
		Expect(server.authz.EndGrantsOf(ctx, hostToken)).To(BeZero(), "no grant is alive")
	})

	It("issue no code when the second verification fails", Label("B9", "J7"), func(ctx SpecContext) {
		open(oauth.Config{})
		form := server.ticket()
		site.set(func(token string) (oauth.Principal, error) {
			site.set(unavailable)
			return accepting(token)
		})
		Expect(server.approve(form)).To(beConsentPage())
		site.set(accepting)
		Expect(server.approve(form).Code).To(Equal(http.StatusSeeOther), "the form can be submitted again")
		Expect(server.authz.EndGrantsOf(ctx, hostToken)).To(Equal(1))
	})

	DescribeTable("end the call that is being verified",
		Label("J8", "I16"), func(ctx SpecContext, end func(context.Context, tokenAnswer)) {
			open(oauth.Config{RecheckEvery: time.Minute})
			tokens := tokensOf(server.exchange(server.code()))
			hours.advance(time.Minute)
			site.set(func(token string) (oauth.Principal, error) {
				end(ctx, tokens)
				return accepting(token)
			})
			Expect(server.call(tokens.Access).Code).To(Equal(http.StatusUnauthorized))
		},
		Entry("when the site ends the grant", func(ctx context.Context, _ tokenAnswer) {
			Expect(server.authz.EndGrantsOf(ctx, hostToken)).To(Equal(1))
		}),
		Entry("when the client revokes the access token", func(_ context.Context, tokens tokenAnswer) {
			Expect(server.post("/oauth/revoke", map[string][]string{"token": {tokens.Access}}).Code).
				To(Equal(http.StatusOK))
		}),
	)

	It("apply new scopes to the call that is being verified", Label("J8", "B10", "G10"), func() {
		open(oauth.Config{
			RecheckEvery: time.Minute, Scopes: []oauth.Scope{{Name: "mcp"}, {Name: "mcp:admin"}},
			DefaultScopes: []string{"mcp", "mcp:admin"},
		}, bootstrap.WithToolScopes(func(string) oauth.Scopes { return oauth.NewScopes("mcp:admin") }))
		tokens := tokensOf(server.exchange(server.code(scope("mcp mcp:admin offline_access"))))
		Expect(server.send(tokens.Access, callAdmin).Code).NotTo(Equal(http.StatusForbidden))
		hours.advance(time.Minute)
		site.set(func(string) (oauth.Principal, error) {
			return oauth.Principal{Subject: "ada", Scopes: []string{"mcp"}}, nil
		})
		Expect(server.send(tokens.Access, callAdmin).Code).To(Equal(http.StatusForbidden))
	})

	It("answer 503 and end no grant while the verifier is unavailable", Label("J7", "J8", "G11"), func() {
		open(oauth.Config{RecheckEvery: time.Minute})
		tokens := tokensOf(server.exchange(server.code()))
		hours.advance(time.Minute)
		for _, verify := range []verifyFunc{panicking, unavailable} {
			site.set(verify)
			w := server.call(tokens.Access)
			Expect(w.Code).To(Equal(http.StatusServiceUnavailable))
			Expect(w.Header()).To(And(HaveKey("Retry-After"), Not(HaveKey("Www-Authenticate"))))
		}
		site.set(accepting)
		Expect(server.call(tokens.Access).Code).To(Equal(http.StatusOK))
	})

	It("verify once for concurrent calls, and not again within the interval", Label("J8"), func() {
		open(oauth.Config{RecheckEvery: time.Minute})
		tokens := tokensOf(server.exchange(server.code()))
		hours.advance(time.Minute)
		var asked atomic.Int32
		all := make(chan struct{})
		site.set(func(token string) (oauth.Principal, error) {
			asked.Add(1)
			<-all
			return accepting(token)
		})
		var calling sync.WaitGroup
		var under atomic.Int32
		for range 8 {
			calling.Go(func() {
				defer GinkgoRecover()
				under.Add(1)
				Expect(server.call(tokens.Access).Code).To(Equal(http.StatusOK))
			})
		}
		Eventually(under.Load).Should(BeEquivalentTo(8))
		Eventually(asked.Load).Should(BeEquivalentTo(1))
		close(all)
		calling.Wait()
		together := asked.Load()
		Expect(together).To(BeNumerically("<", 8), "calls that come after the answer may verify again")
		Expect(server.call(tokens.Access).Code).To(Equal(http.StatusOK))
		Expect(asked.Load()).To(Equal(together))
	})

	It("do not make a timely refresh count as late", Label("D27"), func() {
		open(oauth.Config{})
		tokens := tokensOf(server.exchange(server.code()))
		next := tokensOf(server.refresh(tokens.Refresh))
		Expect(server.call(next.Access).Code).To(Equal(http.StatusOK))
		hours.advance(5*time.Minute - 2*time.Second)
		site.set(func(token string) (oauth.Principal, error) {
			hours.advance(3 * time.Second)
			return accepting(token)
		})
		Expect(tokensOf(server.refresh(tokens.Refresh)).Refresh).To(Equal(next.Refresh))
	})

	It("give a refresh that is overtaken by two others the tokens of the last one", Label("D27", "I15"), func() {
		open(oauth.Config{})
		tokens := tokensOf(server.exchange(server.code()))
		var newest tokenAnswer
		site.set(func(token string) (oauth.Principal, error) {
			site.set(accepting)
			newest = tokensOf(server.refresh(tokensOf(server.refresh(tokens.Refresh)).Refresh))
			return accepting(token)
		})
		Expect(tokensOf(server.refresh(tokens.Refresh))).To(And(
			HaveField("Refresh", newest.Refresh), HaveField("Access", newest.Access)))
		Expect(server.call(newest.Access).Code).To(Equal(http.StatusOK))
		Expect(tokensOf(server.refresh(newest.Refresh)).Error).To(BeEmpty())
	})

	It("do not occur for a refresh that is refused without verification", Label("D22", "D24", "J6"), func() {
		open(oauth.Config{})
		tokens := tokensOf(server.exchange(server.code()))
		site.set(func(string) (oauth.Principal, error) {
			Fail("the site was asked")
			return oauth.Principal{}, nil
		})
		for name, value := range map[string]string{
			"client_id":     "https://other.example/c.json",
			"scope":         "mcp more",
			"resource":      "https://other.example/mcp",
			"refresh_token": tokens.Access,
		} {
			Expect(server.refresh(tokens.Refresh, func(form url.Values) { form.Set(name, value) }).Code).
				To(Equal(http.StatusBadRequest), name)
		}
	})
})
