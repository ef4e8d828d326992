package bootstrap_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Two MCP servers under one issuer", func() {
	const issuer = "https://cms.example"
	const first, second = issuer + "/mcp", issuer + "/more/mcp"
	var (
		sites  map[string]*fakeVerifier
		hours  *clock
		server *host
	)
	open := func(config oauth.Config, store oauth.Store) *host {
		GinkgoHelper()
		config.Issuer, config.Verifier, config.ResourceName, config.Now = issuer, sites[first], "First", hours.now
		config.MoreServers = []oauth.ProtectedServer{{Resource: second, Name: "Second", Verifier: sites[second]}}
		h := openHost(config, store, nil)
		more := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "more", Version: "1"}, nil),
			bootstrap.WithOAuth(h.authz), bootstrap.WithResource(second))
		Expect(more.Register(h.Echo)).To(Succeed())
		return h
	}
	BeforeEach(func() {
		sites, hours = map[string]*fakeVerifier{first: newFakeVerifier(), second: newFakeVerifier()}, &clock{}
		server = open(oauth.Config{RecheckEvery: time.Minute}, openStore())
	})
	other := map[string]string{first: second, second: first}
	// opens returns which of the two accepts a token, and expects a challenge of the other.
	opens := func(access, mine string) {
		GinkgoHelper()
		Expect(server.sendTo(mine, access, initialize).Code).To(Equal(http.StatusOK))
		refused := server.sendTo(other[mine], access, initialize)
		Expect(refused.Code).To(Equal(http.StatusUnauthorized))
		Expect(refused.Header().Get("WWW-Authenticate")).To(And(
			HavePrefix(`Bearer resource_metadata="`+issuer+"/.well-known/oauth-protected-resource"+
				other[mine][len(issuer):]+`"`),
			ContainSubstring(`error="invalid_token"`)))
	}
	// counted counts the verifications of a site from now on.
	counted := func(resource string) *atomic.Int32 {
		asked := new(atomic.Int32)
		sites[resource].set(func(token string) (oauth.Principal, error) {
			asked.Add(1)
			return accepting(token)
		})
		return asked
	}

	It("refuse tokens of each other, and exchange none for each other",
		Label("U1", "U2", "D17", "G8", "N16"), func() {
			for mine, theirs := range other {
				code := server.code(resource(mine))
				Expect(tokensOf(server.exchange(code, resource(theirs))).Error).To(Equal("invalid_target"))
				tokens := tokensOf(server.exchange(code))
				opens(tokens.Access, mine)
				Expect(tokensOf(server.refresh(tokens.Refresh, resource(theirs))).Error).To(Equal("invalid_target"))
				opens(tokensOf(server.refresh(tokens.Refresh, resource(mine))).Access, mine)
			}
		})

	DescribeTable("are selected by a client that", Label("U2", "A28", "A30", "A31"), func(mine string, uris ...string) {
		opens(tokensOf(server.exchange(server.code(resource(uris...)))).Access, mine)
	},
		Entry("sends no resource: the first", first),
		Entry("sends an empty resource: the first", first, ""),
		Entry("sends the second in another spelling: the second", second, "HTTPS://CMS.example:443/more/mcp/"),
		Entry("sends the second twice: the second", second, second, second+"/"),
	)

	It("refuse a client that sends both, or another resource", Label("U2", "A30", "A31"), func() {
		for _, uris := range [][]string{{first, second}, {issuer + "/other"}, {second, issuer + "/other"}, {issuer}} {
			w := server.ask(resource(uris...))
			Expect(w.Code).To(Equal(http.StatusSeeOther))
			Expect(w.Header().Get("Location")).To(ContainSubstring("error=invalid_target"))
		}
	})

	It("share one verifier if only that is configured", Label("U3"), func() {
		config := oauth.Config{Issuer: issuer, Verifier: sites[first],
			MoreServers: []oauth.ProtectedServer{{Resource: second}}}
		server = openHost(config, openStore(), nil)
		asked := counted(first)
		server.code(resource(second))
		Expect(asked.Load()).To(BeEquivalentTo(2))
	})

	It("end their grants when they are removed from the configuration", Label("U1", "U2", "B4", "D12", "D22"), func() {
		store := openStore()
		server = open(oauth.Config{}, store)
		form, code, kept := server.ticket(resource(second)), server.code(resource(second)),
			server.ticket(resource(first))
		tokens := tokensOf(server.exchange(server.code(resource(second))))
		fewer := openHost(oauth.Config{Issuer: issuer, Verifier: sites[first], Now: hours.now}, store, nil)
		Expect(fewer.approve(form)).
			To(And(HaveField("Code", http.StatusBadRequest), HaveField("Header()", Not(HaveKey("Location")))))
		Expect(tokensOf(fewer.exchange(code)).Error).To(Equal("invalid_grant"))
		Expect(tokensOf(fewer.refresh(tokens.Refresh)).Error).To(Equal("invalid_grant"))
		Expect(fewer.call(tokens.Access).Code).To(Equal(http.StatusUnauthorized))
		Expect(fewer.approve(kept).Code).To(Equal(http.StatusSeeOther))
		Expect(tokensOf(server.exchange(code)).Error).To(BeEmpty(), "the grant is alive")
	})
})

var _ = Describe("Two OAuth servers on one store", Label("D17", "N16"), func() {
	It("do not redeem or refresh tokens of each other", func() {
		store := openStore()
		mine, theirs := openHost(oauth.Config{Issuer: "https://cms.example"}, store, nil),
			openHost(oauth.Config{Issuer: "https://cms.example/other"}, store, nil)
		code := mine.code()
		Expect(tokensOf(theirs.exchange(code)).Error).To(Equal("invalid_grant"))
		tokens := tokensOf(mine.exchange(code))
		Expect(tokensOf(theirs.refresh(tokens.Refresh)).Error).To(Equal("invalid_grant"))
		Expect(tokensOf(mine.refresh(tokens.Refresh)).Error).To(BeEmpty())
	})

	DescribeTable("close the streams of all mounted MCP servers, with any store, when a grant is ended by",
		Label("G16", "E9"), func(ctx SpecContext, end func(context.Context, *host, *pasteporttest.Connection)) {
			site, store := pasteporttest.New(GinkgoTB()), openStore()
			mine := openHost(site.Config(oauth.Config{Secrets: store}), struct{ oauth.Store }{store}, nil)
			second := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "second", Version: "1"}, nil),
				bootstrap.WithOAuth(mine.authz))
			Expect(second.Register(echo.New())).To(Succeed())
			site.Serve(mine.Echo)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL()+"/mcp", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Accept", "text/event-stream")
			connection := site.Connect(hostToken)
			stream, err := connection.Client().Do(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(stream.StatusCode).To(Equal(http.StatusOK))
			end(ctx, mine, connection)
			_, err = io.Copy(io.Discard, stream.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(stream.Body.Close()).To(Succeed())
		},
		Entry("the site", func(ctx context.Context, at *host, _ *pasteporttest.Connection) {
			Expect(at.authz.EndGrantsOf(ctx, hostToken)).To(Equal(1))
		}, SpecTimeout(10*time.Second)),
		Entry("the client", func(_ context.Context, _ *host, c *pasteporttest.Connection) { c.End() },
			SpecTimeout(10*time.Second)),
	)

	It("refuse forms of each other, even with the same issuer", Label("B4"), func() {
		store, issuer := openStore(), "https://cms.example"
		mine := openHost(oauth.Config{Issuer: issuer}, store, nil)
		theirs := openHost(oauth.Config{Issuer: issuer, Resource: issuer + "/other"}, store, nil)
		form := mine.ticket()
		Expect(theirs.approve(form)).
			To(And(HaveField("Code", http.StatusBadRequest), HaveField("Header()", Not(HaveKey("Location")))))
		Expect(mine.approve(form).Code).To(Equal(http.StatusSeeOther))
	})
})
