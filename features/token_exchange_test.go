package features_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
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
	var world *World
	var client *Client
	var code string
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		client = world.NewClient()
		code = client.Authorize(ctx)
	})

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
