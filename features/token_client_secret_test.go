package features_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/oauth2"
)

// SecretClient is a client that registered itself with a secret.
type SecretClient struct {
	*Client
	Secret string
}

func (w *World) RegisterSecretClient(ctx context.Context, method string) *SecretClient {
	GinkgoHelper()
	client := &SecretClient{Client: w.NewClient()}
	answer := w.Register(ctx, map[string]any{
		"client_name": "Spec Client", "redirect_uris": []string{client.Redirect}, "token_endpoint_auth_method": method,
	})
	Expect(answer.StatusCode).To(Equal(http.StatusCreated), answer.Text)
	members := decode(answer)
	Expect(members).To(And(HaveKeyWithValue("token_endpoint_auth_method", method),
		HaveKeyWithValue("client_secret_expires_at", BeZero())))
	client.ID, client.Secret = members["client_id"].(string), members["client_secret"].(string)
	return client
}

func sending(form url.Values, secret string) url.Values {
	form.Set("client_secret", secret)
	return form
}

func (c *SecretClient) Post(ctx context.Context, form url.Values) Response {
	GinkgoHelper()
	return c.Token(ctx, sending(form, c.Secret))
}

// Connect runs a whole code flow and returns the tokens.
func (c *SecretClient) Connect(ctx context.Context) Tokens {
	GinkgoHelper()
	answer := c.Post(ctx, c.Exchange(c.Authorize(ctx)))
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return answer.Tokens()
}

var _ = Describe("Client authentication with a secret", Label("L12", "RFC 7591"), func() {
	world := EachWorld(selfRegistration)
	revoke := func(ctx context.Context, form url.Values, change ...func(*http.Request)) Response {
		GinkgoHelper()
		return Post(ctx, world.Issuer+"/oauth/revoke", form, change...)
	}

	It("is advertised only where clients can register", Label("F2", "L1"), func(ctx SpecContext) {
		methods := func(world *World) any {
			metadata := decode(Get(ctx, world.Issuer+"/.well-known/oauth-authorization-server"))
			return metadata["token_endpoint_auth_methods_supported"]
		}
		Expect(methods(world)).To(Equal([]any{"none", "private_key_jwt", "client_secret_basic", "client_secret_post"}))
		Expect(methods(NewWorld())).To(Equal([]any{"none", "private_key_jwt"}))
	})

	DescribeTable("exchanges, refreshes and revokes with the method that was registered, and with the other",
		func(ctx SpecContext, method string) {
			client := world.RegisterSecretClient(ctx, method)
			form := client.Exchange(client.Authorize(ctx))
			form.Del("client_id")
			tokens := client.Token(ctx, form, basic(client.ID, client.Secret)).Tokens()
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			tokens = client.Post(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			revoked := revoke(ctx, url.Values{"token": {tokens.Refresh}}, basic(client.ID, client.Secret))
			Expect(revoked.StatusCode).To(Equal(http.StatusOK))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(decode(Get(ctx, client.ID))).To(And(HaveKeyWithValue("token_endpoint_auth_method", method),
				Not(HaveKey("client_secret"))), "its document is public")
			Expect(world.Log.String()).NotTo(ContainSubstring(client.Secret))
		},
		Entry(nil, "client_secret_basic"), Entry(nil, "client_secret_post"),
	)

	It("refuses every other secret, and changes nothing", Label("D19", "D27"), func(ctx SpecContext) {
		client := world.RegisterSecretClient(ctx, "client_secret_post")
		tokens, code := client.Connect(ctx), client.Authorize(ctx)
		secret := func(secret string) func(url.Values) { return set("client_secret", secret) }
		for _, spoil := range []func(url.Values){
			drop("client_secret"), secret(""), secret(client.Secret[:len(client.Secret)-1] + "~"),
			secret(client.Secret + "A"), secret(world.RegisterSecretClient(ctx, "client_secret_post").Secret),
			func(form url.Values) { withAssertion(form, "e.v.il") },
		} {
			for _, form := range []url.Values{client.Exchange(code), client.Refresh(tokens.Refresh)} {
				spoil(form)
				refused := client.Token(ctx, form)
				Expect(refused).To(BeRefusedAs(401, "invalid_client"))
				Expect(refused.Header.Get("WWW-Authenticate")).To(HavePrefix("Basic "))
			}
			for _, token := range []string{tokens.Access, tokens.Refresh} {
				form := url.Values{"token": {token}, "client_id": {client.ID}}
				spoil(form)
				Expect(revoke(ctx, form)).To(BeRefusedAs(401, "invalid_client"))
			}
		}
		Expect(client.Token(ctx, client.Exchange(code), basic(client.ID, strings.ToLower(client.Secret)))).
			To(BeRefusedAs(401, "invalid_client"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Post(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Post(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	It("is accepted in a header with a client_id that is not encoded, as the official TypeScript SDK sends it",
		Label("D7"), func(ctx SpecContext) {
			client := world.RegisterSecretClient(ctx, "client_secret_basic")
			form := client.Exchange(client.Authorize(ctx))
			form.Del("client_id")
			unencoded := func(secret string) func(*http.Request) {
				return func(r *http.Request) { r.SetBasicAuth(client.ID, secret) }
			}
			Expect(client.Token(ctx, form, unencoded(client.Secret+"x"))).To(BeRefusedAs(401, "invalid_client"))
			tokens := client.Token(ctx, form, unencoded(client.Secret)).Tokens()
			tokens = client.Token(ctx, client.Refresh(tokens.Refresh), unencoded(client.Secret)).Tokens()
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		})

	It("refuses a secret in the header and another in the body", Label("D7"), func(ctx SpecContext) {
		client := world.RegisterSecretClient(ctx, "client_secret_post")
		form := sending(client.Exchange(client.Authorize(ctx)), client.Secret)
		Expect(client.Token(ctx, form, basic(client.ID, client.Secret))).To(BeRefusedAs(400, "invalid_request"))
		Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
	})

	It("refuses a revocation that does not name the client", Label("E1"), func(ctx SpecContext) {
		client := world.RegisterSecretClient(ctx, "client_secret_post")
		tokens := client.Connect(ctx)
		Expect(revoke(ctx, url.Values{"token": {tokens.Refresh}})).To(BeRefusedAs(401, "invalid_client"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("refuses every secret of a client that registered without one", Label("D8"), func(ctx SpecContext) {
		client := world.RegisterClient(ctx, "http://127.0.0.1:4321/callback")
		form := client.Exchange(client.Authorize(ctx))
		Expect(client.Token(ctx, sending(form, "pps_x"))).To(BeRefusedAs(401, "invalid_client"))
		Expect(client.Token(ctx, sending(form, "")).StatusCode).To(Equal(http.StatusOK))
	})

	It("is never ended for the reuse of an old refresh token", Label("D27"), func(ctx SpecContext) {
		client := world.RegisterSecretClient(ctx, "client_secret_post")
		first := client.Connect(ctx)
		next := client.Post(ctx, client.Refresh(first.Refresh)).Tokens()
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
		world.Clock.Advance(6 * time.Minute)
		Expect(client.Post(ctx, client.Refresh(first.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("keeps its secret when the server secret is replaced, until the old one is forgotten",
		Label("L7", "J2"), func(ctx SpecContext) {
			client := world.RegisterSecretClient(ctx, "client_secret_basic")
			tokens := client.Connect(ctx)
			world.RotateKeys(ctx)
			tokens = client.Post(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
			world.RotateKeys(ctx, "--forget-old")
			Expect(client.Post(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
		})

	DescribeTable("connects golang.org/x/oauth2 with a secret, refreshes, and connects it again after a rotation",
		func(ctx SpecContext, method string, style oauth2.AuthStyle) {
			client := world.RegisterSecretClient(ctx, method)
			config := oauth2.Config{
				ClientID:     client.ID,
				ClientSecret: client.Secret,
				RedirectURL:  client.Redirect,
				Scopes:       []string{"mcp", "offline_access"},
				Endpoint: oauth2.Endpoint{
					AuthURL:   world.Issuer + "/oauth/authorize",
					TokenURL:  world.Issuer + "/oauth/token",
					AuthStyle: style,
				},
			}
			connect := func() *oauth2.Token {
				GinkgoHelper()
				verifier := oauth2.GenerateVerifier()
				page := Get(ctx, config.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)))
				code := ReadPage(page).Approve(ctx, world.Token).Target().Query().Get("code")
				token := must(config.Exchange(ctx, code, oauth2.VerifierOption(verifier)))
				Expect(world.Call(ctx, token.AccessToken).StatusCode).To(Equal(http.StatusOK))
				return token
			}
			refresh := func(token *oauth2.Token) *oauth2.Token {
				GinkgoHelper()
				next := must(config.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token())
				Expect(world.Call(ctx, next.AccessToken).StatusCode).To(Equal(http.StatusOK))
				return next
			}
			token := refresh(connect())
			world.RotateKeys(ctx)
			refresh(token)
			refresh(connect())
		},
		Entry("in the header", "client_secret_basic", oauth2.AuthStyleInHeader),
		Entry("in the body", "client_secret_post", oauth2.AuthStyleInParams),
		Entry("that finds the style by itself", "client_secret_post", oauth2.AuthStyleAutoDetect),
	)
})

var _ = Describe("Registering a client for a form that asks for its id", Label("L12"), func() {
	world := EachWorld(selfRegistration)
	register := func(ctx context.Context, flags ...string) Ran {
		command := []string{"clients", "register", "--issuer", world.Issuer}
		return Run(ctx, slices.Concat(command, world.Kept(), flags)...)
	}
	named := []string{"--self-registration", "--name", "A form", "--redirect-uri", "http://127.0.0.1:4321/callback"}

	It("prints an id and a secret with which the client connects", func(ctx SpecContext) {
		ran := register(ctx, append(named, "--secret")...)
		Expect(ran.Code).To(BeZero(), ran.Err)
		id, secret, _ := strings.Cut(strings.TrimSpace(ran.Out), "\nclient_secret: ")
		Expect(ran.Err).NotTo(ContainSubstring(secret))
		client := &SecretClient{Client: world.NewClient(), Secret: secret}
		client.ID = strings.TrimPrefix(id, "client_id: ")
		Expect(client.Token(ctx, client.Exchange(client.Authorize(ctx)))).To(BeRefusedAs(401, "invalid_client"))
		Expect(world.Call(ctx, client.Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("prints the id of a public client", func(ctx SpecContext) {
		ran := register(ctx, named...)
		Expect(ran.Out).To(HavePrefix("client_id: " + world.Issuer + "/oauth/clients/"))
		Expect(ran.Out).NotTo(ContainSubstring("secret"))
		client := world.NewClient()
		client.ID = strings.TrimSpace(strings.TrimPrefix(ran.Out, "client_id: "))
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
	})

	DescribeTable("refuses", func(ctx SpecContext, code int, why string, flags []string) {
		ran := register(ctx, flags...)
		Expect(ran.Code).To(Equal(code))
		Expect(ran.Err).To(ContainSubstring(why))
		Expect(ran.Out).To(BeEmpty())
	},
		Entry("while clients may not register", 1, "self-registration",
			append([]string{"--self-registration=off"}, named[1:]...)),
		Entry("while the list of allowed clients leaves it out", 1, "does not let apps register",
			append([]string{"--allow-clients", "claude.ai"}, named...)),
		Entry("a redirect URI that nobody may use", 1, "redirect_uris[0]",
			[]string{"--self-registration", "--name", "x", "--redirect-uri", "javascript:alert(1)"}),
		Entry("no redirect URI", 2, "--redirect-uri", []string{"--self-registration", "--name", "x"}),
	)
})
