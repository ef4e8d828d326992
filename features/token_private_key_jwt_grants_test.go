package features_test

import (
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A grant bound to private_key_jwt", Label("D33", "RFC 7523", "stores"), func() {
	var world *World
	var client *SigningClient
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
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
	var world *World
	var client *SigningClient
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewSigningClient("RS256", chatGPT)
	})

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
