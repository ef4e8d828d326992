package features_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// TokenSite is a site with a verifier endpoint over TLS, which sends the same response until it is
// changed.
type TokenSite struct {
	site   *ClientSite
	status atomic.Int64
	body   atomic.Value
}

// NewTokenSite starts a site that accepts every token.
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

func (s *TokenSite) Answer(status int, body string) {
	s.status.Store(int64(status))
	s.body.Store(body)
}

const clientSecret = "the-secret-of-pasteport"

// remoteWay is a kind of remote verifier, with the site's responses for an editor and for an
// invalid token.
type remoteWay struct {
	configure      func(url string) service.Verification
	yes, author    string
	withID         string // with the id of the token
	noStatus       int
	no             string
	brokenStatuses []int
}

var (
	overHTTP = remoteWay{
		configure: func(url string) service.Verification {
			return service.Verification{Verifier: service.VerifierHTTP, VerifyURL: url}
		},
		yes:            `{"subject":"ada","roles":["editor"]}`,
		author:         `{"subject":"ada","roles":["author"]}`,
		withID:         `{"subject":"ada","token_id":"4711"}`,
		noStatus:       401,
		no:             `{}`,
		brokenStatuses: []int{500, 404, 302},
	}
	introspecting = remoteWay{
		configure: func(url string) service.Verification {
			return service.Verification{
				Verifier:                  service.VerifierIntrospection,
				IntrospectionURL:          url,
				IntrospectionClientID:     "pasteport",
				IntrospectionClientSecret: clientSecret,
			}
		},
		yes:            `{"active":true,"sub":"ada","roles":["editor"],"scope":"of the site"}`,
		author:         `{"active":true,"sub":"ada","roles":["author"]}`,
		withID:         `{"active":true,"sub":"ada","jti":"4711"}`,
		noStatus:       200,
		no:             `{"active":false}`,
		brokenStatuses: []int{500, 401, 403, 302},
	}
)

var _ = Describe("Verifying tokens over HTTP", func() {
	DescribeTableSubtree("at", func(way remoteWay) {
		var site *TokenSite
		var world *World
		var client *Client
		BeforeEach(func() {
			site = NewTokenSite(way.yes)
			world = NewWorld(func(config *service.Config) {
				config.Verification = way.configure(site.site.URL("/token"))
			})
			client = world.NewClient()
		})
		tools := func(ctx context.Context, tokens Tokens) []string {
			return world.Converse(ctx, stateless, tokens.Access).Ask(ctx, "tools/list", params{}).Tools()
		}

		It("accepts tokens that the site accepts, with the roles in the response",
			Label("roles"), func(ctx SpecContext) {
				tokens := client.Connect(ctx)
				Expect(tools(ctx, tokens)).To(ConsistOf(editorTools))
				site.Answer(200, way.author)
				Expect(tools(ctx, client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens())).
					To(ConsistOf(authorTools))
			})

		It("refuses other tokens, and ends grants of a token that becomes invalid",
			Label("B8", "J1"), func(ctx SpecContext) {
				tokens := client.Connect(ctx)
				site.Answer(way.noStatus, way.no)
				Expect(client.Consent(ctx).Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusForbidden))
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
			})

		It("ends the connections of a token by the id that the site has named, without the token",
			Label("J23"), func(ctx SpecContext) {
				others := client.Connect(ctx)
				site.Answer(200, way.withID)
				mine := client.Connect(ctx)
				waiting := client.Authorize(ctx)
				end := world.service.Authz.EndGrantsOfTokenID
				Expect(end(ctx, "4712")).To(BeZero())
				Expect(end(ctx, "4711")).To(Equal(2))
				Expect(world.Call(ctx, mine.Access).StatusCode).To(Equal(http.StatusUnauthorized))
				Expect(client.Token(ctx, client.Exchange(waiting))).To(BeRefusedAs(400, "invalid_grant"))
				Expect(world.Call(ctx, others.Access).StatusCode).To(Equal(http.StatusOK))
				_, err := end(ctx, "")
				Expect(err).To(MatchError(ContainSubstring("its id is empty")))
			})

		It("issues and ends no grants while the site fails, and logs the reason",
			Label("B9", "D25", "B15"), func(ctx SpecContext) {
				tokens := client.Connect(ctx)
				for _, status := range way.brokenStatuses {
					site.Answer(status, way.yes)
					Expect(client.Consent(ctx).Approve(ctx, world.Token).StatusCode).
						To(Equal(http.StatusServiceUnavailable))
					Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).
						To(Equal(http.StatusServiceUnavailable))
				}
				site.Answer(200, way.yes)
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
				Expect(world.Log.String()).
					To(And(ContainSubstring("cannot verify tokens at the site"), ContainSubstring("it answered 500"),
						Not(ContainSubstring(world.Token)), Not(ContainSubstring(clientSecret))))
			})
	}, Entry("a verify URL", overHTTP), Entry("an introspection endpoint", Label("RFC 7662"), introspecting))

	It("logs that an introspection endpoint rejects the client secret", func(ctx SpecContext) {
		site := NewTokenSite("{}")
		site.Answer(401, `{"error":"invalid_client"}`)
		world := NewWorld(func(config *service.Config) {
			config.Verification = introspecting.configure(site.site.URL("/token"))
		})
		Expect(world.NewClient().Consent(ctx).Approve(ctx, world.Token).StatusCode).
			To(Equal(http.StatusServiceUnavailable))
		Expect(world.Log.String()).To(ContainSubstring("it does not accept our client id and secret"))
	})
})

var _ = Describe("Changing the verifier", Label("J24"), func() {
	// named answers with the name of a person, or with none.
	named := func(site *TokenSite, subject string) { site.Answer(200, `{"subject":"`+subject+`"}`) }
	var site *TokenSite
	var world *World
	var client *Client
	BeforeEach(func() {
		site = NewTokenSite(`{}`)
		world = NewWorld(func(config *service.Config) {
			config.Verification, config.RecheckEvery = overHTTP.configure(site.site.URL("/token")), time.Minute
		})
		client = world.NewClient()
	})
	refresh := func(ctx context.Context, tokens Tokens) Response {
		return client.Token(ctx, client.Refresh(tokens.Refresh))
	}

	It("goes on with every connection when the site begins to name people", func(ctx SpecContext) {
		used, refreshed := client.Connect(ctx), client.Connect(ctx)
		named(site, "ada")
		world.Clock.Advance(time.Minute)
		Expect(world.Call(ctx, used.Access).StatusCode).To(Equal(http.StatusOK))
		refreshed = refresh(ctx, refreshed).Tokens()
		for grant, err := range world.service.Authz.Grants(ctx) {
			Expect(err).NotTo(HaveOccurred())
			Expect(grant.Subject).To(Equal("ada"))
		}
		Expect(refresh(ctx, used).StatusCode).To(Equal(http.StatusOK))
		named(site, "") // the verifier from before
		Expect(refresh(ctx, refreshed).StatusCode).To(Equal(http.StatusOK))
	})

	It("ends a connection whose token is another person's now, and names both", func(ctx SpecContext) {
		named(site, "ada")
		tokens := client.Connect(ctx)
		named(site, "bob")
		Expect(refresh(ctx, tokens)).To(BeRefusedAs(400, "invalid_grant"))
		Expect(world.Log.String()).To(And(ContainSubstring(`"reason":"other_person"`),
			ContainSubstring(`\"ada\" before, \"bob\" now`), Not(ContainSubstring("host_token_invalid"))))
		Eventually(world.Stories).WithContext(ctx).WithTimeout(patience).
			Should(ContainElement(HaveField("Says", ContainSubstring(`"ada" before, "bob" now`))))
	})
})

var _ = Describe("Choosing a verifier", Label("F9"), func() {
	DescribeTable("names the error and the remedy when",
		func(ctx SpecContext, chosen service.Verification, said ...string) {
			config := service.Config{DataDir: GinkgoT().TempDir(), Verification: chosen}
			config.Issuer = "https://cms.example"
			_, err := service.Open(ctx, config)
			Expect(err).To(HaveOccurred())
			for _, sentence := range said {
				Expect(err.Error()).To(ContainSubstring(sentence))
			}
			Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
		},
		Entry("the verifier is unknown", service.Verification{Verifier: "ldap"},
			`verifier is "ldap": choose one of site, upstream, file, http, introspection`),
		Entry("a setting is missing",
			service.Verification{Verifier: "introspection", IntrospectionURL: "http://203.0.113.1/x"},
			"introspection-url: http is for this computer and private networks only",
			"introspection-client-id is empty",
			"introspection-client-secret is empty"),
		Entry("a setting would have no effect",
			service.Verification{TokenFile: "tokens", IntrospectionClientSecret: "s3cret"},
			`token-file is set, but verifier is "site": leave it out, or choose "file"`,
			"introspection-client-secret is set"),
		Entry("the URL is malformed", service.Verification{Verifier: "http", VerifyURL: "cms.example"},
			"verify-url: it has no scheme: begin it with https://"),
		Entry("the token file is missing", service.Verification{Verifier: "file", TokenFile: "/nowhere/tokens"},
			"reading the token file", "no such file"),
	)
})
