package features_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// BeRefusedAs matches the JSON error of the token and revocation endpoints.
func BeRefusedAs(status int, code string) types.GomegaMatcher {
	return And(
		HaveField("StatusCode", status),
		HaveField("Header", And(
			HaveKeyWithValue("Content-Type", []string{"application/json"}),
			HaveKeyWithValue("Cache-Control", []string{"no-store"}),
			HaveKeyWithValue("Access-Control-Allow-Origin", []string{"*"}), Not(HaveKey("Location")))),
		HaveField("Tokens().Error", code),
		HaveField("Tokens().Description", Not(BeEmpty())),
	)
}

// basic sets an Authorization header, encoded as RFC 6749 §2.3.1 requires.
func basic(user, password string) func(*http.Request) {
	return func(r *http.Request) {
		pair := url.QueryEscape(user) + ":" + url.QueryEscape(password)
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
}

var _ = Describe("Exchanging a code", Label("RFC 6749 §4.1.3", "RFC 7636 §4.6", "smoke", "stores"), func() {
	world := EachWorld()
	client := world.EachClient()
	var code string
	BeforeEach(func(ctx SpecContext) { code = client.Authorize(ctx) })

	It("returns an access token for the MCP server", Label("D29"), func(ctx SpecContext) {
		answer := client.Token(ctx, client.Exchange(code))
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
		Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(decode(answer)).
			To(And(HaveLen(5), HaveKeyWithValue("token_type", "Bearer"), HaveKeyWithValue("expires_in", 3600.0),
				HaveKeyWithValue("scope", "mcp offline_access"), HaveKeyWithValue("access_token", HavePrefix("ppa_")),
				HaveKeyWithValue("refresh_token", HavePrefix("ppr_"))))
		Expect(world.Call(ctx, answer.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("returns no refresh token unless offline_access was granted", Label("D29"), func(ctx SpecContext) {
		answer := client.Token(ctx, client.Exchange(client.Authorize(ctx, set("scope", "mcp"))))
		Expect(decode(answer)).To(And(HaveLen(4), Not(HaveKey("refresh_token")), HaveKeyWithValue("scope", "mcp")))
	})

	It("accepts the client_id in a Basic header with an empty secret", Label("D7"), func(ctx SpecContext) {
		form := client.Exchange(code)
		form.Del("client_id")
		Expect(client.Token(ctx, form, basic(client.ID, "")).StatusCode).To(Equal(http.StatusOK))
	})

	It("works without resource and redirect_uri, as older clients do", Label("D15", "D17"), func(ctx SpecContext) {
		form := client.Exchange(code)
		form.Del("resource")
		form.Del("redirect_uri")
		Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
	})

	It("ignores an empty secret and unknown parameters", Label("D5", "D8"), func(ctx SpecContext) {
		form := client.Exchange(code)
		form.Set("client_secret", "")
		form.Set("audience", "x")
		Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
	})

	It("limits the token to the scopes in the request", Label("D18"), func(ctx SpecContext) {
		form := client.Exchange(code)
		form.Set("scope", "mcp other")
		tokens := client.Token(ctx, form).Tokens()
		Expect(tokens.Scope).To(Equal("mcp"))
		Expect(tokens.Refresh).NotTo(BeEmpty())
	})

	It("is refused when the code has expired", Label("D14", "I4", "I20"), func(ctx SpecContext) {
		world.Clock.Advance(5 * time.Minute)
		Expect(client.Token(ctx, client.Exchange(code))).To(BeRefusedAs(400, "invalid_grant"))
	})

	Context("when the code was exchanged before", func() {
		var tokens Tokens
		BeforeEach(func(ctx SpecContext) { tokens = client.Token(ctx, client.Exchange(code)).Tokens() })

		It("is refused within ten seconds as a retry, without ending the grant",
			Label("D19", "I14"), func(ctx SpecContext) {
				for range 2 {
					Expect(client.Token(ctx, client.Exchange(code))).To(BeRefusedAs(400, "invalid_grant"))
					world.Clock.Advance(4 * time.Second)
				}
				Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
				Expect(world.Decisions()).To(ContainElements("code_redeemed", "code_retried"))
			})

		It("is refused later and ends the grant", Label("D19", "I6"), func(ctx SpecContext) {
			world.Clock.Advance(11 * time.Second)
			Expect(client.Token(ctx, client.Exchange(code))).To(BeRefusedAs(400, "invalid_grant"))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		})

		It("does not end the grant when the replay has a wrong verifier", Label("D19", "I7"), func(ctx SpecContext) {
			form := client.Exchange(code)
			form.Set("code_verifier", "another-verifier-that-is-long-enough-for-the-rules")
			Expect(client.Token(ctx, form)).To(BeRefusedAs(400, "invalid_grant"))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		})
	})

	It("answers a preflight", Label("D1"), func(ctx SpecContext) {
		answer := request(ctx, http.MethodOptions, world.Issuer+"/oauth/token",
			http.Header{"Origin": {"https://app.example"}})
		Expect(answer.StatusCode).To(Equal(http.StatusNoContent))
		Expect(answer.Header.Get("Access-Control-Allow-Methods")).To(Equal("POST"))
		Expect(answer.Header.Get("Access-Control-Allow-Headers")).
			To(Equal("Authorization, Content-Type, Accept, MCP-Protocol-Version"))
		Expect(answer.Header.Get("Access-Control-Max-Age")).To(Equal("86400"))
		Expect(answer.Header.Get("Access-Control-Allow-Origin")).To(Equal("*"))
		Expect(answer.Header).NotTo(HaveKey("Access-Control-Allow-Credentials"))
	})
})

// atOnce runs n calls at the same moment and returns all responses.
func atOnce(n int, call func() Response) []Response {
	answers := make([]Response, n)
	start, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			defer GinkgoRecover()
			<-start.Done()
			answers[i] = call()
		})
	}
	stop()
	callers.Wait()
	return answers
}

var _ = Describe("Invalid token requests", Label("RFC 6749"), Ordered, ContinueOnFailure, func() {
	const other = "another-verifier-that-is-long-enough-for-the-rules"
	var world *World
	var client *Client
	var code string
	var tokens Tokens
	BeforeAll(func(ctx SpecContext) {
		world = NewWorld()
		client = world.NewClient()
		tokens = client.Connect(ctx)
	})
	BeforeAll(func(ctx SpecContext) { code = client.Authorize(ctx) })

	DescribeTableSubtree("with a", func(form func() url.Values) {
		DescribeTable("is refused without side effects",
			func(ctx SpecContext, status int, refusal string, spoil func(*http.Request)) {
				answer := client.Token(ctx, form(), spoil)
				Expect(answer).To(BeRefusedAs(status, refusal))
				Expect(answer.Header.Get("Pragma")).To(Equal("no-cache"))
				Expect(answer.Text).NotTo(ContainSubstring("evil"))
				Expect(answer.Header.Values("WWW-Authenticate")).
					To(HaveLen(map[bool]int{true: 1}[status == http.StatusUnauthorized]))
			},
			Entry("on GET", Label("D1"), 405, "invalid_request", func(r *http.Request) { r.Method = http.MethodGet }),
			Entry("without a media type", Label("D2"), 400, "invalid_request", func(r *http.Request) {
				r.Header.Del("Content-Type")
			}),
			Entry("of more than 32 KiB", Label("D3"), 413, "invalid_request",
				body("evil="+strings.Repeat("x", 32<<10))),
			Entry("with half an escape", Label("D3"), 400, "invalid_request", body("grant_type=%e")),
			Entry("with a secret in the URL", Label("D4"), 400, "invalid_request", func(r *http.Request) {
				r.URL.RawQuery = "client_secret=evil"
			}),
			Entry("with a password", Label("D7"), 401, "invalid_client", func(r *http.Request) {
				basic(client.ID, "evil")(r)
			}),
			Entry("with credentials that are not Base64", Label("D7"), 401, "invalid_client",
				with("Authorization", "Basic evil!")),
			Entry("with two Authorization headers", Label("D7"), 400, "invalid_request", func(r *http.Request) {
				r.Header["Authorization"] = []string{"Bearer x",
					"Basic " + base64.StdEncoding.EncodeToString([]byte("evil:evil"))}
			}),
			Entry("in two media types", Label("D2"), 400, "invalid_request", func(r *http.Request) {
				r.Header["Content-Type"] = []string{"application/x-www-form-urlencoded", "text/plain"}
			}),
			Entry("with another client_id in the header", Label("D7"), 400, "invalid_request",
				basic("https://evil.example/c.json", "")),
		)

		DescribeTable("is refused without side effects for its fields",
			func(ctx SpecContext, status int, refusal string, spoil func(url.Values)) {
				spoiled := form()
				spoil(spoiled)
				Expect(client.Token(ctx, spoiled)).To(BeRefusedAs(status, refusal))
			},
			Entry("when grant_type is repeated", Label("D5"), 400, "invalid_request", repeat("grant_type")),
			Entry("when an unknown parameter is repeated", Label("D5"), 400, "invalid_request", func(v url.Values) {
				v["evil"] = []string{"1", "2"}
			}),
			Entry("when grant_type is missing", Label("D6"), 400, "invalid_request", drop("grant_type")),
			Entry("when grant_type is empty", Label("D5", "D6"), 400, "invalid_request", set("grant_type", "")),
			Entry("when grant_type is client_credentials", Label("D6"), 400, "unsupported_grant_type",
				set("grant_type", "client_credentials")),
			Entry("when a client_secret is sent", Label("D8"), 401, "invalid_client", set("client_secret", "evil")),
			Entry("when client_id is missing", Label("D9"), 400, "invalid_request", drop("client_id")),
			Entry("when an assertion is sent", Label("D10"), 401, "invalid_client", set("client_assertion", "e.v.il")),
			Entry("when client_id is another client's", Label("D11", "D13", "D22"), 400, "invalid_grant",
				set("client_id", "https://evil.example/c.json")),
			Entry("when client_id has a trailing slash", Label("C10", "D11"), 400, "invalid_grant", func(v url.Values) {
				v.Set("client_id", client.ID+"/")
			}),
			Entry("when there are two resources", Label("D17", "D24"), 400, "invalid_target", func(v url.Values) {
				v["resource"] = []string{world.MCP(), "https://evil.example"}
			}),
			Entry("when its scope is malformed", Label("D18", "D24"), 400, "invalid_scope", set("scope", `"evil"`)),
			Entry("when its scope was not granted", Label("D18", "D24"), 400, "invalid_scope", set("scope", "evil")),
		)
	},
		Entry("code", Label("I3"), func() url.Values { return client.Exchange(code) }),
		Entry("refresh token", func() url.Values { return client.Refresh(tokens.Refresh) }),
	)

	DescribeTable("is refused without side effects for its code",
		Label("I3"), func(ctx SpecContext, refusal string, spoil func(url.Values)) {
			form := client.Exchange(code)
			spoil(form)
			Expect(client.Token(ctx, form)).To(BeRefusedAs(http.StatusBadRequest, refusal))
		},
		Entry("when there is none", Label("D12"), "invalid_request", drop("code")),
		Entry("when it is empty", Label("D5", "D12"), "invalid_request", set("code", "")),
		Entry("when it is unknown", Label("D12"), "invalid_grant", set("code", "ppc_"+strings.Repeat("A", 43))),
		Entry("when it is a refresh token", Label("D12", "H1"), "invalid_grant", func(v url.Values) {
			v.Set("code", tokens.Refresh)
		}),
		Entry("when there is no verifier", Label("D12"), "invalid_request", drop("code_verifier")),
		Entry("when the verifier is wrong", Label("D16"), "invalid_grant", set("code_verifier", other)),
		Entry("when the verifier is the challenge", Label("D16"), "invalid_grant", func(v url.Values) {
			v.Set("code_verifier", client.Challenge())
		}),
		Entry("when the redirect has another port", Label("D15"), "invalid_grant",
			set("redirect_uri", "http://127.0.0.1:4322/callback")),
		Entry("when the redirect is another published one", Label("D15"), "invalid_grant",
			set("redirect_uri", "https://client.example/callback")),
	)

	DescribeTable("is refused without side effects for its refresh token",
		func(ctx SpecContext, refusal string, spoil func(url.Values)) {
			form := client.Refresh(tokens.Refresh)
			spoil(form)
			Expect(client.Token(ctx, form)).To(BeRefusedAs(http.StatusBadRequest, refusal))
		},
		Entry("when there is none", Label("D22"), "invalid_request", drop("refresh_token")),
		Entry("when it is empty", Label("D22"), "invalid_request", set("refresh_token", "")),
		Entry("when it is unknown", Label("D22"), "invalid_grant",
			set("refresh_token", "ppr_"+strings.Repeat("A", 43))),
		Entry("when it is an access token", Label("D22", "H1"), "invalid_grant", func(v url.Values) {
			v.Set("refresh_token", tokens.Access)
		}),
		Entry("when it is a code", Label("D22", "H1"), "invalid_grant", func(v url.Values) {
			v.Set("refresh_token", code)
		}),
		Entry("when it is the site's own token", Label("D22"), "invalid_grant", func(v url.Values) {
			v.Set("refresh_token", world.Token)
		}),
	)

	// These specs come last, because they use up the code and the tokens.
	It("leave code and refresh token usable", Label("D16", "D22", "I3"), func(ctx SpecContext) {
		Expect(client.Token(ctx, client.Exchange(code), with("Authorization", "Digest evil")).StatusCode).
			To(Equal(http.StatusOK))
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("get the same error text for every unusable code or token", Label("D32"), func(ctx SpecContext) {
		spent, ended := client.Authorize(ctx), client.Authorize(ctx)
		mine := client.Token(ctx, client.Exchange(spent)).Tokens()
		unproved := client.Exchange(spent)
		unproved.Set("code_verifier", other)
		texts := []string{client.Token(ctx, unproved).Text,
			client.Token(ctx, client.Exchange("ppc_"+strings.Repeat("A", 43))).Text}
		client.Revoke(ctx, mine.Refresh)
		Expect(world.EndGrantsOf(ctx, world.Token)).To(BeNumerically(">", 0))
		texts = append(texts, client.Token(ctx, client.Exchange(ended)).Text,
			client.Token(ctx, client.Refresh(mine.Refresh)).Text)
		late := client.Authorize(ctx)
		world.Clock.Advance(5 * time.Minute)
		texts = append(texts, client.Token(ctx, client.Exchange(late)).Text,
			client.Token(ctx, client.Refresh("garbage")).Text)
		Expect(texts).To(
			HaveEach(MatchJSON(
				`{"error":"invalid_grant","error_description":"The code or refresh token is invalid, expired or ` +
					`already used"}`)))
	})

	It("get an error for a code after the site has revoked its token",
		Label("D21", "I8", "I10"), func(ctx SpecContext) {
			pending := client.Authorize(ctx)
			Expect(world.EndGrantsOf(ctx, world.Token)).To(BeNumerically(">", 0))
			Expect(client.Token(ctx, client.Exchange(pending))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		})
})
