package bootstrap_test

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
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

	DescribeTable("refuse tokens of each other", Label("U1", "G8", "N16"), func(uri string) {
		tokens := tokensOf(server.exchange(server.code(resource(uri)), resource(uri)))
		opens(tokens.Access, uri)
		next := tokensOf(server.refresh(tokens.Refresh, resource(uri)))
		opens(next.Access, uri)
	}, Entry("the first", first), Entry("the second", second))

	DescribeTable("are selected by a client that", Label("U2", "A28", "A30", "A31"), func(mine string, uris ...string) {
		opens(tokensOf(server.exchange(server.code(resource(uris...)))).Access, mine)
	},
		Entry("sends no resource: the first", first),
		Entry("sends an empty resource: the first", first, ""),
		Entry("sends the second in another spelling: the second", second, "HTTPS://CMS.example:443/more/mcp/"),
		Entry("sends the second twice: the second", second, second, second+"/"),
	)

	DescribeTable("refuse a client that", Label("U2", "A30", "A31"), func(uris ...string) {
		w := server.ask(resource(uris...))
		Expect(w.Code).To(Equal(http.StatusSeeOther))
		Expect(w.Header().Get("Location")).To(ContainSubstring("error=invalid_target"))
	},
		Entry("sends both", first, second), Entry("sends both in the other order", second, first),
		Entry("sends an unknown resource", issuer+"/other"),
		Entry("sends a known and an unknown resource", second, issuer+"/other"), Entry("sends the issuer", issuer),
	)

	DescribeTable("are not exchanged for each other", Label("U2", "D17"), func(mine string) {
		code := server.code(resource(mine))
		Expect(tokensOf(server.exchange(code, resource(other[mine]))).Error).To(Equal("invalid_target"))
		tokens := tokensOf(server.exchange(code))
		Expect(tokensOf(server.refresh(tokens.Refresh, resource(other[mine]))).Error).To(Equal("invalid_target"))
		Expect(tokensOf(server.refresh(tokens.Refresh)).Error).To(BeEmpty())
	}, Entry("a token of the first", first), Entry("a token of the second", second))

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
