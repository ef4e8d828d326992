package features_test

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// chatGPT gives a document the authentication members of ChatGPT's document.
func chatGPT(document map[string]any) {
	document["token_endpoint_auth_method"] = "private_key_jwt"
	document["token_endpoint_auth_methods_supported"] = []string{"none", "private_key_jwt"}
	document["token_endpoint_auth_signing_alg"] = "RS256"
}

func claim(name string, value any) spoil {
	return func(_, claims map[string]any) { claims[name] = value }
}
func field(name string, value any) spoil {
	return func(header, _ map[string]any) { header[name] = value }
}
func noClaim(name string) spoil { return func(_, claims map[string]any) { delete(claims, name) } }
func noField(name string) spoil { return func(header, _ map[string]any) { delete(header, name) } }

var _ = Describe("Client authentication with private_key_jwt", Label("D33", "RFC 7523"), func() {
	world := EachWorld()

	exchange := func(ctx SpecContext, client *SigningClient, change ...spoil) Response {
		return client.Token(ctx, client.Sign(client.Exchange(client.Authorize(ctx)), change...))
	}
	in := func(d time.Duration) int64 { return world.Clock.Now().Add(d).Unix() }

	DescribeTable("exchanges, refreshes and revokes", func(ctx SpecContext, algorithm string) {
		client := world.NewSigningClient(algorithm)
		first := client.Connect(ctx)
		Expect(world.Call(ctx, first.Access).StatusCode).To(Equal(http.StatusOK))
		next := client.Token(ctx, client.Sign(client.Refresh(first.Refresh))).Tokens()
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Revocation(ctx, client.Sign(url.Values{"token": {next.Refresh}})).StatusCode).
			To(Equal(http.StatusOK))
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(client.Keys.fetches.Load()).To(BeEquivalentTo(1), "the keys are cached")
	},
		Entry(nil, "ES256"), Entry(nil, "RS256"), Entry(nil, "PS256"), Entry(nil, "EdDSA"),
	)

	It("accepts keys in the document", Label("C31"), func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		client.Publish(func(document map[string]any) {
			document["token_endpoint_auth_method"] = "private_key_jwt"
			document["jwks"] = map[string]any{"keys": []any{client.JWK()}}
		})
		client.Connect(ctx)
		Expect(client.Keys.fetches.Load()).To(BeZero())
	})

	It("is required from a client that declares it and lists nothing beside it", Label("C30"), func(ctx SpecContext) {
		client := world.NewSigningClient("RS256")
		Expect(client.Token(ctx, client.Exchange(client.Authorize(ctx)))).To(BeRefusedAs(401, "invalid_client"))
		client.Connect(ctx)
	})

	It("accepts an assertion in every form that clients send", func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		for i, change := range []spoil{
			claim("aud", world.Issuer+"/oauth/token"),
			claim("aud", []string{world.Issuer + "/oauth/token", world.Issuer}),
			claim("exp", in(time.Hour+25*time.Second)), claim("exp", in(-25*time.Second)), noField("typ"),
			field("typ", "client-authentication+jwt"), field("typ", "oauth-client-auth+jwt"),
			field("typ", "application/jwt"), claim("jti", strings.Repeat("j", 256)), noField("kid"),
		} {
			form := client.Sign(client.Exchange(client.Authorize(ctx)), change)
			form.Del("client_id")
			answer := client.Token(ctx, form)
			Expect(answer.StatusCode).To(Equal(http.StatusOK), "%d: %s", i, answer.Text)
		}
	})

	It("is refused and leaves the code redeemable", func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		form := client.Exchange(client.Authorize(ctx))
		const other = "https://other.example/c.json"
		for i, change := range []spoil{
			field("alg", "none"), field("alg", "HS256"), field("crit", []string{"x"}), claim("iss", other),
			claim("sub", other), claim("aud", other), claim("aud", []string{world.Issuer, other}), noClaim("aud"),
			claim("aud", []string{}), noClaim("exp"), claim("exp", in(-31*time.Second)),
			claim("exp", in(time.Hour+40*time.Second)), field("typ", "at+jwt"), field("typ", 7), field("typ", ""),
			claim("nbf", in(40*time.Second)), noClaim("jti"), claim("jti", strings.Repeat("j", 257)),
			claim("exp", "soon"), field("kid", "another"),
		} {
			Expect(client.Token(ctx, client.Sign(form, change))).To(BeRefusedAs(401, "invalid_client"), "%d", i)
		}
		Expect(client.Token(ctx, client.Sign(form)).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("is refused for its form and leaves the code redeemable",
		func(ctx SpecContext, status int, refusal string, change func(url.Values)) {
			client := world.NewSigningClient("ES256")
			form := client.Sign(client.Exchange(client.Authorize(ctx)))
			spoiled := must(url.ParseQuery(form.Encode()))
			change(spoiled)
			Expect(client.Token(ctx, spoiled)).To(BeRefusedAs(status, refusal))
			Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK), "the assertion can still be used")
		},
		Entry("when there is no assertion", 401, "invalid_client", func(form url.Values) {
			drop("client_assertion")(form)
			drop("client_assertion_type")(form)
		}),
		Entry("when the type is missing", 401, "invalid_client", drop("client_assertion_type")),
		Entry("when the type is wrong", 401, "invalid_client",
			set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer")),
		Entry("when it is not a JWT", 401, "invalid_client", set("client_assertion", "no.jwt")),
		Entry("when a secret comes with it", Label("D8"), 401, "invalid_client", set("client_secret", "s3cret")),
		Entry("when it is repeated", Label("D5"), 400, "invalid_request", repeat("client_assertion")),
		Entry("when another client_id is named", Label("D13"), 400, "invalid_grant",
			set("client_id", "https://other.example/c.json")),
	)

	It("is accepted without a kid from the only key that fits the algorithm", func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		other, forbidden := world.NewSigningClient("RS256").JWK(), world.NewSigningClient("ES256").JWK()
		forbidden["use"] = "enc"
		client.Keys.publish(other, forbidden, client.JWK())
		Expect(exchange(ctx, client, noField("kid")).StatusCode).To(Equal(http.StatusOK))
		second := world.NewSigningClient("ES256")
		second.Keys.publish(second.JWK(), client.JWK())
		Expect(exchange(ctx, second, noField("kid"))).To(BeRefusedAs(401, "invalid_client"))
	})

	DescribeTable("is refused with a reason that names the limit and the value",
		func(ctx SpecContext, change func() spoil, said func() string) {
			client := world.NewSigningClient("ES256")
			Expect(exchange(ctx, client, change())).To(BeRefusedAs(401, "invalid_client"))
			Expect(linesWith(world.Log.String(), "does not prove who it is")).To(ConsistOf(ContainSubstring(said())))
		},
		Entry("of its audience", func() spoil { return claim("aud", []string{world.Issuer, "https://other.example"}) },
			func() string { return `has aud \"https://other.example\", this server is` }),
		Entry("of its jti", func() spoil { return claim("jti", strings.Repeat("j", 257)) },
			func() string { return "has a jti of 257 bytes, it must have 1 to 256" }),
	)

	It("is refused with an algorithm that the document does not declare", func(ctx SpecContext) {
		client := world.NewSigningClient("RS256", chatGPT)
		Expect(exchange(ctx, client, field("alg", "PS256"))).To(BeRefusedAs(401, "invalid_client"))
		Expect(exchange(ctx, client).StatusCode).To(Equal(http.StatusOK))
	})

	It("is refused with a key that the client does not publish", func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		client.Key = newKey("ES256")
		Expect(exchange(ctx, client)).To(BeRefusedAs(401, "invalid_client"))
	})

	DescribeTable("reports that the client's keys cannot be fetched, and leaves code and assertion usable",
		func(ctx SpecContext, answer http.HandlerFunc) {
			client := world.NewSigningClient("ES256")
			form := client.Sign(client.Exchange(client.Authorize(ctx)))
			client.Keys.serve(answer)
			refused := client.Token(ctx, form)
			Expect(refused).To(BeRefusedAs(503, "temporarily_unavailable"))
			Expect(refused.Header.Get("Retry-After")).NotTo(BeEmpty())
			client.Keys.publish(client.JWK())
			Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("when their host fails", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}),
		Entry("when their host closes the connection", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}),
		Entry("when their URL redirects", Label("C12", "C20"), func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}),
	)

	It("reports the same when the client's document cannot be fetched", func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		form := client.Exchange(client.Authorize(ctx))
		world.Clock.Advance(time.Minute)
		world.Clients.Serve(strings.TrimPrefix(client.ID, world.Clients.URL("")), http.NotFound)
		Expect(client.Token(ctx, client.Sign(form))).To(BeRefusedAs(503, "temporarily_unavailable"))
	})

	It("is refused while the client publishes a private key", Label("C31"), func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		key := client.JWK()
		key["d"] = "x"
		client.Keys.publish(key)
		Expect(exchange(ctx, client)).To(BeRefusedAs(401, "invalid_client"))
	})

	Context("when an assertion was used", func() {
		It("is refused, at the other endpoint and after a restart too", func(ctx SpecContext) {
			client := world.NewSigningClient("ES256")
			assertion := client.Assertion()
			tokens := client.Token(ctx, withAssertion(client.Exchange(client.Authorize(ctx)), assertion)).Tokens()
			Expect(client.Token(ctx, withAssertion(client.Refresh(tokens.Refresh), assertion))).
				To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Revocation(ctx, withAssertion(url.Values{"token": {tokens.Refresh}}, assertion))).
				To(BeRefusedAs(401, "invalid_client"))
			world.Restart()
			Expect(client.Token(ctx, withAssertion(client.Refresh(tokens.Refresh), assertion))).
				To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh))).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Log.String()).NotTo(ContainSubstring(assertion), "the log does not contain the assertion")
		})

		It("accepts one of many simultaneous requests", func(ctx SpecContext) {
			client := world.NewSigningClient("ES256")
			form := client.Sign(client.Refresh(client.Connect(ctx).Refresh))
			Expect(statuses(atOnce(8, func() Response {
				return client.Token(ctx, form)
			}))).To(Equal([]int{200, 401, 401, 401, 401, 401, 401, 401}))
		})

		It("accepts the same jti from another client", func(ctx SpecContext) {
			for range 2 {
				Expect(exchange(ctx, world.NewSigningClient("ES256"), claim("jti", "1")).StatusCode).
					To(Equal(http.StatusOK))
			}
		})
	})

	It("does not record the jti of a refused assertion", func(ctx SpecContext) {
		client := world.NewSigningClient("ES256")
		Expect(exchange(ctx, client, claim("jti", "1"), claim("aud", "https://other.example"))).
			To(BeRefusedAs(401, "invalid_client"))
		Expect(exchange(ctx, client, claim("jti", "1")).StatusCode).To(Equal(http.StatusOK))
	})
})

var _ = Describe("A grant bound to private_key_jwt", Label("D33", "RFC 7523", "stores"), func() {
	world := EachWorld()
	var client *SigningClient
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) {
		client = world.NewSigningClient("ES256")
		tokens = client.Connect(ctx)
	})

	It("is not refreshed without a signature, and not ended by an old token", Label("D27"), func(ctx SpecContext) {
		next := client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh))).Tokens()
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
		world.Clock.Advance(6 * time.Minute)
		fetched := world.Clients.Fetches()
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
		Expect(world.Clients.Fetches()).To(Equal(fetched), "a request without an assertion causes no fetch")
		Expect(world.Call(ctx, next.Access).StatusCode).
			To(Equal(http.StatusOK), "a request without a signature does not end the grant")
		Expect(client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh)))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("is not ended by an unsigned replay of its code", Label("D19"), func(ctx SpecContext) {
		form := client.Exchange(client.Authorize(ctx))
		tokens := client.Token(ctx, client.Sign(form)).Tokens()
		form.Del("client_assertion")
		form.Del("client_assertion_type")
		Expect(client.Token(ctx, form)).To(BeRefusedAs(401, "invalid_client"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("is not revoked without a signature", Label("E1", "E4"), func(ctx SpecContext) {
		for _, token := range []string{tokens.Access, tokens.Refresh} {
			Expect(client.Revoke(ctx, token)).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Revocation(ctx, url.Values{"token": {token}})).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Revocation(ctx, url.Values{"token": {token}, "client_id": {"https://other.example/c.json"}}).
				StatusCode).To(Equal(http.StatusOK))
		}
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Revocation(ctx, client.Sign(url.Values{"token": {tokens.Access}})).StatusCode).
			To(Equal(http.StatusOK))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("continues when the client publishes a new key", func(ctx SpecContext) {
		client.Rotate()
		client.Keys.publish(client.JWK())
		Expect(client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh))).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Keys.fetches.Load()).To(BeEquivalentTo(2))
	})

	It("fetches keys for an unknown key id at most once a minute", func(ctx SpecContext) {
		client.Rotate()
		refresh := func() Response { return client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh))) }
		for range 5 {
			Expect(refresh()).To(BeRefusedAs(401, "invalid_client"))
		}
		Expect(client.Keys.fetches.Load()).To(BeEquivalentTo(2))
		client.Keys.publish(client.JWK())
		Expect(refresh()).To(BeRefusedAs(401, "invalid_client"))
		world.Clock.Advance(time.Minute)
		Expect(refresh().StatusCode).To(Equal(http.StatusOK))
		Expect(client.Keys.fetches.Load()).To(BeEquivalentTo(3))
	})

	It("requires a signature even if the client's document no longer declares private_key_jwt", func(ctx SpecContext) {
		client.Publish()
		world.Clock.Advance(time.Minute)
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
		Expect(client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh)))).To(BeRefusedAs(401, "invalid_client"))
	})
})

var _ = Describe("A client whose document lists none beside private_key_jwt", Label("C30", "D33", "stores"), func() {
	world := EachWorld()
	var client *SigningClient
	BeforeEach(func() { client = world.NewSigningClient("RS256", chatGPT) })

	It("stays public when it redeems its code without an assertion", func(ctx SpecContext) {
		tokens := client.Client.Connect(ctx)
		Expect(client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh)))).To(BeRefusedAs(401, "invalid_client"))
		Expect(client.Keys.fetches.Load()).To(BeZero())
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	It("has to sign from then on when it redeems its code with an assertion", Label("D19"), func(ctx SpecContext) {
		form := client.Exchange(client.Authorize(ctx))
		tokens := client.Token(ctx, client.Sign(form)).Tokens()
		for _, unsigned := range []url.Values{client.Exchange(form.Get("code")), client.Refresh(tokens.Refresh)} {
			Expect(client.Token(ctx, unsigned)).To(BeRefusedAs(401, "invalid_client"))
		}
		Expect(client.Revoke(ctx, tokens.Refresh)).To(BeRefusedAs(401, "invalid_client"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh))).StatusCode).To(Equal(http.StatusOK))
	})

	It("does not use up its code with a wrong assertion", func(ctx SpecContext) {
		form := client.Exchange(client.Authorize(ctx))
		other := world.NewSigningClient("RS256")
		Expect(client.Token(ctx, withAssertion(client.Exchange(form.Get("code")), other.Assertion()))).
			To(BeRefusedAs(401, "invalid_client"))
		Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
	})
})

var _ = Describe("A public client's grant", Label("RFC 7523", "D33", "D11", "C47", "stores"), func() {
	It("requires no signature, accepts none and causes no fetch", func(ctx SpecContext) {
		world := NewWorld()
		public, signer := world.NewClient(), world.NewSigningClient("ES256")
		form := public.Exchange(public.Authorize(ctx))
		world.Clock.Advance(2 * time.Minute) // the cached document has expired
		signer.ID = public.ID
		fetched := world.Clients.Fetches()
		Expect(public.Token(ctx, signer.Sign(public.Exchange(form.Get("code"))))).To(BeRefusedAs(401, "invalid_client"))
		tokens := public.Token(ctx, form).Tokens()
		Expect(public.Token(ctx, signer.Sign(public.Refresh(tokens.Refresh)))).To(BeRefusedAs(401, "invalid_client"))
		Expect(signer.Revocation(ctx, signer.Sign(url.Values{"token": {tokens.Refresh}}))).
			To(BeRefusedAs(401, "invalid_client"))
		Expect(public.Token(ctx, public.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Clients.Fetches()).To(Equal(fetched))
	})

	It("stays public when the client starts to sign", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewSigningClient("ES256", func(document map[string]any) {
			document["token_endpoint_auth_method"] = "none"
		})
		form := client.Exchange(client.Authorize(ctx))
		client.Publish(func(document map[string]any) {
			document["token_endpoint_auth_method"], document["jwks_uri"] = "private_key_jwt", client.Keys.url
		})
		world.Clock.Advance(time.Minute)
		Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
	})
})
