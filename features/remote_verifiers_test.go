package features_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/server"
)

// TokenSite is a site that answers about its tokens over TLS, always in the same way until that is changed.
type TokenSite struct {
	site   *ClientSite
	status atomic.Int64
	body   atomic.Value
}

// NewTokenSite knows every token.
func NewTokenSite(body string) *TokenSite {
	s := &TokenSite{site: NewClientSite()}
	s.Answer(http.StatusOK, body)
	s.site.Serve("/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(s.status.Load()))
		_, _ = io.WriteString(w, s.body.Load().(string)+"\n")
	})
	return s
}

// Answer is what the site says from now on.
func (s *TokenSite) Answer(status int, body string) {
	s.status.Store(int64(status))
	s.body.Store(body)
}

const clientSecret = "the-secret-of-pasteport"

// remoteWay is one way to ask a site, with what it answers for an editor and how it says no.
type remoteWay struct {
	configure      func(url string) server.Verification
	yes, author    string
	noStatus       int
	no             string
	brokenStatuses []int
}

var (
	overHTTP = remoteWay{
		configure: func(url string) server.Verification {
			return server.Verification{Verifier: server.VerifierHTTP, VerifyURL: url}
		},
		yes: `{"subject":"ada","roles":["editor"]}`, author: `{"subject":"ada","roles":["author"]}`, noStatus: 401, no: `{}`,
		brokenStatuses: []int{500, 404, 302},
	}
	introspecting = remoteWay{
		configure: func(url string) server.Verification {
			return server.Verification{
				Verifier: server.VerifierIntrospection, IntrospectionURL: url, IntrospectionClientID: "pasteport", IntrospectionClientSecret: clientSecret,
			}
		},
		yes: `{"active":true,"sub":"ada","roles":["editor"],"scope":"of the site"}`, author: `{"active":true,"sub":"ada","roles":["author"]}`,
		noStatus: 200, no: `{"active":false}`, brokenStatuses: []int{500, 401, 403, 302},
	}
)

var _ = Describe("Asking a site over HTTP", func() {
	DescribeTableSubtree("at", func(way remoteWay) {
		var site *TokenSite
		var world *World
		var client *Client
		BeforeEach(func() {
			site = NewTokenSite(way.yes)
			world = NewWorld(func(config *server.Config) { config.Verification = way.configure(site.site.URL("/token")) })
			client = world.NewClient()
		})
		tools := func(ctx context.Context, tokens Tokens) []string {
			return world.Converse(ctx, stateless, tokens.Access).Ask(ctx, "tools/list", params{}).Tools()
		}

		It("lets in whom the site knows, with the roles that it says", Label("roles"), func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			Expect(tools(ctx, tokens)).To(ConsistOf(editorTools))
			site.Answer(200, way.author)
			Expect(tools(ctx, client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens())).To(ConsistOf(authorTools))
		})

		It("lets nobody else in, and ends what was made with a token that holds no longer", Label("B8", "J1"), func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			site.Answer(way.noStatus, way.no)
			Expect(client.Consent(ctx).Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusForbidden))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		})

		It("issues and ends nothing while the site cannot tell, and says why in the log", Label("B9", "D25", "B15"), func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			for _, status := range way.brokenStatuses {
				site.Answer(status, way.yes)
				Expect(client.Consent(ctx).Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusServiceUnavailable))
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusServiceUnavailable))
			}
			site.Answer(200, way.yes)
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Log.String()).To(And(ContainSubstring("cannot verify tokens at the site"), ContainSubstring("it answered 500"),
				Not(ContainSubstring(world.Token)), Not(ContainSubstring(clientSecret))))
		})
	}, Entry("a URL of its own", overHTTP), Entry("an introspection endpoint", Label("RFC 7662"), introspecting))

	It("says in the log that an introspection endpoint does not take our secret", func(ctx SpecContext) {
		site := NewTokenSite("{}")
		site.Answer(401, `{"error":"invalid_client"}`)
		world := NewWorld(func(config *server.Config) {
			config.Verification = introspecting.configure(site.site.URL("/token"))
		})
		Expect(world.NewClient().Consent(ctx).Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(world.Log.String()).To(ContainSubstring("it does not accept our client id and secret"))
	})
})

var _ = Describe("Choosing who is asked about tokens", Label("F9"), func() {
	DescribeTable("names the error and the remedy when", func(ctx SpecContext, chosen server.Verification, said ...string) {
		config := server.Config{DataDir: GinkgoT().TempDir(), Verification: chosen}
		config.Issuer = "https://cms.example"
		_, err := server.Open(ctx, config)
		Expect(err).To(HaveOccurred())
		for _, sentence := range said {
			Expect(err.Error()).To(ContainSubstring(sentence))
		}
		Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
	},
		Entry("there is no such verifier", server.Verification{Verifier: "ldap"}, `Verifier is "ldap": choose one of site, upstream, file, http, introspection`),
		Entry("a setting is missing", server.Verification{Verifier: "introspection", IntrospectionURL: "http://cms.example/x"},
			"IntrospectionURL: it is not https", "IntrospectionClientID is empty", "IntrospectionClientSecret is empty"),
		Entry("a setting would have no effect", server.Verification{TokenFile: "tokens", IntrospectionClientSecret: "s3cret"},
			`TokenFile is set, but Verifier is "site": leave it out, or choose "file"`, "IntrospectionClientSecret is set"),
		Entry("the URL is none", server.Verification{Verifier: "http", VerifyURL: "cms.example"}, "VerifyURL: it is no URL: write it like"),
		Entry("the token file is missing", server.Verification{Verifier: "file", TokenFile: "/nowhere/tokens"}, "reading the token file", "no such file"),
	)
})
