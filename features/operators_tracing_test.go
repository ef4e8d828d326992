package features_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Tracing connections", Label("trace"), func() {
	var service *Operated
	var client *Client
	BeforeEach(func() {
		service = Operate()
		client = service.NewClient()
	})

	It("records a connection from the authorization to the first call, refreshes and the end", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		service.Call(ctx, tokens.Access)
		service.Call(ctx, tokens.Access)
		connected := service.Newest(ctx, wholeWay)
		Expect(connected.State).To(Equal("connected"))
		Expect(connected.Client).To(Equal(client.ID))
		Expect(connected.Network).To(Equal("127.0.0.0/24"))
		Expect(connected.Agent).To(Equal("Go-http-client/1.1"))
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		client.Revoke(ctx, next.Refresh)
		ended := service.Newest(ctx, wholeWay+" refresh ended")
		Expect(ended.ID).To(Equal(connected.ID))
		Expect(ended.State).To(Equal("ended"))
		Expect(ended.Verdict).To(ContainSubstring("the client revoked its tokens"))
	})

	It("records what a client does before its authorization as an attempt of its own", Label("T2"),
		func(ctx SpecContext) {
			service.Discover(ctx)
			service.Newest(ctx, "challenge resource_metadata server_metadata")
			client.Connect(ctx)
			service.Newest(ctx, "authorize client_metadata page token_judged code_issued exchange")
			Expect(service.Traces(ctx)).To(HaveLen(2))
		})

	It("shows the reconnection of a client whose grant has ended as a separate connection", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		service.Call(ctx, tokens.Access)
		Expect(service.EndGrantsOf(ctx, service.Token)).Error().NotTo(HaveOccurred())
		Expect(service.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		refused := service.Newest(ctx,
			"authorize client_metadata page token_judged code_issued exchange call ended call:refused")
		Expect(refused.Last().Rule).To(Equal("G7"))
		Expect(refused.State).To(Equal("ended"))
		service.Discover(ctx)
		service.Call(ctx, client.Connect(ctx).Access)
		Expect(service.Newest(ctx, wholeWay).ID).NotTo(Equal(refused.ID))
	})

	DescribeTable("names the step at which a connection stops, the rule and the remedy",
		func(ctx SpecContext, take func(context.Context), path, rule, reason, hint string) {
			take(ctx)
			stopped := service.Newest(ctx, path)
			Expect(stopped.State).To(Equal("stopped"))
			Expect(stopped.Last().Rule).To(Equal(rule))
			Expect(stopped.Last().Reason).To(ContainSubstring(reason))
			Expect(stopped.Verdict).To(ContainSubstring(reason))
			Expect(stopped.Hint).To(ContainSubstring(hint))
		},
		Entry("at a client that tries dynamic registration", func(ctx context.Context) {
			service.Discover(ctx)
			Post(ctx, service.Issuer+"/oauth/register", url.Values{})
		}, "challenge resource_metadata server_metadata registration:refused", "F4", "self-registration is off",
			"Set self-registration: true"),
		Entry("at a client that looks for OpenID configuration", func(ctx context.Context) {
			Get(ctx, service.Issuer+"/.well-known/openid-configuration")
		}, "server_metadata:refused", "F5", "not an OpenID provider", "oauth-authorization-server"),
		Entry("at a malformed client_id", func(ctx context.Context) {
			client.ID = "my-client"
			client.AskFor(ctx, client.Request())
		}, "authorize:refused", "C1", "must be the https URL", "maker"),
		Entry("at a metadata host that is down", func(ctx context.Context) {
			client.ID = "https://127.0.0.1:1/client.json"
			client.AskFor(ctx, client.Request())
		}, "authorize client_metadata:refused", "C41", "connection refused", "firewall"),
		Entry("at a missing metadata document", func(ctx context.Context) {
			client.ID += "x"
			client.AskFor(ctx, client.Request())
		}, "authorize client_metadata:refused", "C42", "404", "status"),
		Entry("at a missing code_challenge", func(ctx context.Context) {
			parameters := client.Request()
			parameters.Del("code_challenge")
			client.AskFor(ctx, parameters)
		}, "authorize client_metadata page:refused", "A19", "code_challenge is missing", "maker"),
		Entry("at a person who denies access", func(ctx context.Context) {
			client.Consent(ctx).Deny(ctx)
		}, "authorize client_metadata page token_judged:refused", "B5", "did not allow", "Deny"),
		Entry("at a wrong token", func(ctx context.Context) {
			client.Consent(ctx).Approve(ctx, "demo_wrong")
		}, "authorize client_metadata page token_judged:refused", "B8", "does not know this token", "expired"),
		Entry("at a form of another site", func(ctx context.Context) {
			Post(ctx, service.Issuer+"/oauth/authorize", url.Values{}, func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			})
		}, "authorize:refused", "B3", "another site", ""),
		Entry("at a wrong code_verifier", func(ctx context.Context) {
			form := client.Exchange(client.Authorize(ctx))
			form.Set("code_verifier", strings.Repeat("x", 43))
			client.Token(ctx, form)
		}, "authorize client_metadata page token_judged code_issued exchange:refused", "D16",
			"code_verifier does not fit", "confused two attempts"),
		Entry("at an unknown code, which is of no attempt", func(ctx context.Context) {
			client.Authorize(ctx)
			service.Clock.Advance(time.Second) // the exchange is the newest by the millisecond
			client.Token(ctx, client.Exchange("ppc_"+strings.Repeat("A", 43)))
		}, "exchange:refused", "D12, D22", "unknown",
			"replicas"),
		Entry("at an expired code", func(ctx context.Context) {
			code := client.Authorize(ctx)
			service.Clock.Advance(5 * time.Minute)
			client.Token(ctx, client.Exchange(code))
		}, "authorize client_metadata page token_judged code_issued exchange:refused", "D14", "has expired",
			"auth-code-ttl"),
		Entry("at a client_secret", func(ctx context.Context) {
			form := client.Exchange("x")
			form.Set("client_secret", "s")
			client.Token(ctx, form)
		}, "exchange:refused", "D8", "no secret", "maker"),
		Entry("at another origin", func(ctx context.Context) {
			Post(ctx, service.MCP(), url.Values{}, func(r *http.Request) {
				r.Header.Set("Origin", "https://elsewhere.example")
			})
		}, "call:refused", "G1", "not allowed", "allow it"),
		Entry("at a refresh token of another client", func(ctx context.Context) {
			form := client.Refresh(client.Connect(ctx).Refresh)
			form.Set("client_id", service.NewClient().ID)
			client.Token(ctx, form)
		}, "authorize client_metadata page token_judged code_issued exchange refresh:refused", "D22", "another client",
			"right deployment"),
		Entry("at a request that the MCP layer refuses", func(ctx context.Context) {
			access := client.Connect(ctx).Access
			r := must(http.NewRequestWithContext(ctx, http.MethodGet, service.MCP(), http.NoBody))
			r.Header.Set("Authorization", "Bearer "+access)
			r.Header.Set("Accept", "application/json")
			Send(r)
		}, "authorize client_metadata page token_judged code_issued exchange stream:refused", "", "406", ""),
	)

	DescribeTable("names the missing step after a timeout",
		func(ctx SpecContext, take func(context.Context), path string, patience time.Duration, missing, never,
			hint string) {
			take(ctx)
			waits := service.Newest(ctx, path)
			Expect(waits.State).To(Equal("under way"))
			Expect(waits.Missing).To(Equal(missing))
			service.Clock.Advance(patience)
			gone := service.Newest(ctx, path)
			Expect(gone.State).To(Equal("half way"))
			Expect(gone.Missing).To(Equal(missing))
			Expect(gone.Verdict).To(ContainSubstring(never))
			Expect(gone.Hint).To(ContainSubstring(hint))
		},
		Entry("after the challenge", func(ctx context.Context) { service.Call(ctx, "") },
			"challenge", time.Minute, "resource_metadata", "never requested the metadata of the resource",
			"WWW-Authenticate"),
		Entry("after the resource metadata", func(ctx context.Context) {
			service.Call(ctx, "")
			Get(ctx, service.Issuer+"/.well-known/oauth-protected-resource/mcp")
		}, "challenge resource_metadata", time.Minute, "server_metadata", "never requested that of the server",
			"trailing slash"),
		Entry("after the server metadata", func(ctx context.Context) { service.Discover(ctx) },
			"challenge resource_metadata server_metadata", time.Minute, "authorize",
			"never opened the authorization page", "issuer"),
		Entry("at the consent page", func(ctx context.Context) { client.Consent(ctx) },
			"authorize client_metadata page", 10*time.Minute, "token_judged", "the person never submitted it",
			"closed it"),
		Entry("after the code", func(ctx context.Context) { client.Authorize(ctx) },
			"authorize client_metadata page token_judged code_issued", time.Minute, "exchange", "never exchanged it",
			"/oauth/token"),
		Entry("after the token", func(ctx context.Context) { client.Connect(ctx) },
			"authorize client_metadata page token_judged code_issued exchange", time.Minute, "call",
			"received its token but never used it", "Authorization header"),
		Entry("after the stream", func(ctx context.Context) {
			r := must(http.NewRequestWithContext(ctx, http.MethodGet, service.MCP(), http.NoBody))
			r.Header.Set("Authorization", "Bearer "+client.Connect(ctx).Access)
			r.Header.Set("Accept", "text/event-stream")
			Follow(r).Next("endpoint")
		}, "authorize client_metadata page token_judged code_issued exchange stream", time.Minute, "call",
			"never sent a message", "buffering"),
	)

	It("finds an attempt by the incident id on the page", func(ctx SpecContext) {
		client.ID += "x"
		page := client.AskFor(ctx, client.Request())
		service.Newest(ctx, "authorize client_metadata:refused")
		found := service.AskAdmin(ctx, "/connections/"+incidentOn(page))
		Expect(found.StatusCode).To(Equal(http.StatusOK))
		Expect(found.Text).
			To(And(ContainSubstring("rule C42"), ContainSubstring("<dt>Client</dt> <dd>"+client.ID+"</dd>")))
		Expect(page.Header.Get("X-Request-Id")).To(Equal(incidentOn(page)), "header and page have the same id")
		Expect(linesWith(service.Log.String(), `"request":"`+incidentOn(page)+`"`)).
			To(ContainElement(ContainSubstring(`"rule":"C42"`)))
	})

	It("takes only a POST for a registration", Label("T3"), func(ctx SpecContext) {
		for _, path := range []string{"/register", "/oauth/register"} {
			Expect(Get(ctx, service.Issuer+path).StatusCode).To(Equal(http.StatusNotFound))
			Expect(request(ctx, http.MethodOptions, service.Issuer+path, nil).StatusCode).To(Equal(http.StatusNotFound))
		}
		service.Call(ctx, "")
		service.Newest(ctx, "challenge")
		Expect(service.Traces(ctx)).To(HaveLen(1))
	})

	It("lists the newest two hundred connections on the page, and all in JSON", func(ctx SpecContext) {
		for i := range 201 {
			Post(ctx, service.Issuer+"/oauth/authorize", url.Values{}, with("User-Agent", fmt.Sprint("browser ", i)))
		}
		Eventually(func() []Traced {
			return service.Traces(ctx)
		}).WithContext(ctx).WithTimeout(patience).Should(HaveLen(201))
		page := service.AskAdmin(ctx, "/").Text
		Expect(strings.Count(page, "<li>")).To(Equal(200))
		Expect(page).To(ContainSubstring("This list has the newest only"))
	})

	It("records repeated requests without a grant once", func(ctx SpecContext) {
		for range 20 {
			service.Call(ctx, "")
		}
		service.Newest(ctx, "challenge")
	})
})

func incidentOn(page Response) string {
	GinkgoHelper()
	found := regexp.MustCompile(`\b[A-Z2-7]{12}\b`).FindString(page.Text)
	Expect(found).NotTo(BeEmpty(), page.Text)
	return found
}

var _ = Describe("Tracing an address that does not match", Label("trace"), func() {
	const secret = "of-the-query"
	var operated *Operated
	BeforeEach(func() { operated = Operate() })

	// tells expects both addresses in the newest trace, without the query, and neither
	// of them in the response.
	tells := func(ctx context.Context, answer Response, path, both string) {
		GinkgoHelper()
		Expect(operated.Newest(ctx, path).Last().Reason).To(And(ContainSubstring(both), Not(ContainSubstring(secret))))
		Expect(operated.Log.String()).NotTo(ContainSubstring(secret))
		Expect(answer.Text).NotTo(Or(ContainSubstring(both), ContainSubstring(secret)))
	}

	It("shows the redirect URI that was sent and those that the client published", Label("A12"), func(ctx SpecContext) {
		client := operated.NewClient()
		request := client.Request()
		request.Set("redirect_uri", "https://client.example/callback/?key="+secret)
		tells(ctx, client.AskFor(ctx, request), "authorize client_metadata page:refused",
			"https://client.example/callback/?... was sent, expected is http://127.0.0.1/callback "+
				"or https://client.example/callback")
	})

	It("shows the redirect URI of an exchange and that of the authorization request",
		Label("D15"), func(ctx SpecContext) {
			client := operated.NewClient()
			form := client.Exchange(client.Authorize(ctx))
			form.Set("redirect_uri", "http://localhost:4321/callback?key="+secret)
			tells(ctx, client.Token(ctx, form),
				"authorize client_metadata page token_judged code_issued exchange:refused",
				"http://localhost:4321/callback?... was sent, expected is "+client.Redirect)
		})

	It("shows a redirect URI that no client may have", Label("A14"), func(ctx SpecContext) {
		client := operated.NewClient()
		request := client.Request()
		request.Set("redirect_uri", "http://client.example/callback?key="+secret)
		tells(ctx, client.AskFor(ctx, request), "authorize client_metadata page:refused",
			"http://client.example/callback?...")
	})

	It("shows the client_id of a document and the URL that it was fetched from", Label("C23"), func(ctx SpecContext) {
		client := operated.ClientWith("client_id", "https://other.example/c.json")
		tells(ctx, client.AskFor(ctx, client.Request()), "authorize client_metadata:refused",
			`it is "https://other.example/c.json", fetched was "`+client.ID+`"`)
	})

	It("shows the resource that was requested and the one of this server", Label("A30"), func(ctx SpecContext) {
		client := operated.NewClient()
		request := client.Request()
		request.Set("resource", operated.Issuer+"/other?key="+secret)
		tells(ctx, client.AskFor(ctx, request), "authorize client_metadata page:refused",
			operated.Issuer+"/other?... was sent, expected is "+operated.MCP())
	})
})
