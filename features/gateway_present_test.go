package features_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

func presenting(entries ...string) func(*service.Config) {
	return func(c *service.Config) { c.Gateway.Present = entries }
}

func headerAfter(name, prefix string) func(*http.Request) string {
	return func(r *http.Request) string {
		key, _ := strings.CutPrefix(r.Header.Get(name), prefix)
		return key
	}
}

func basicPassword(user string) func(*http.Request) string {
	return func(r *http.Request) string {
		if name, password, ok := r.BasicAuth(); ok && name == user {
			return password
		}
		return ""
	}
}

var _ = Describe("Presenting a key to an upstream", Label("gateway", "U18"), func() {
	const oddKey = `a key/of+100%&äöü=?#"\`

	DescribeTable("sends it where the server reads it, and nowhere else:", Label("U6", "U14", "J13", "N13"),
		func(ctx SpecContext, keyOf func(*http.Request) string, wire string, entries ...string) {
			tape := NewTape()
			upstream := NewUpstreamReading(keyOf, apiKey)
			world := NewGateway(upstream.URL+"/mcp", presenting(entries...))
			client := world.NewClient()
			Expect(client.Consent(ctx).Approve(ctx, "another-key")).To(BeAPage(http.StatusForbidden, ""))
			tokens := client.Connect(ctx)
			for _, revision := range []string{sessions, stateless} {
				talk := world.Converse(ctx, revision, tokens.Access)
				Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ContainElement("shout"))
				Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			}
			tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			asked := upstream.Asked()
			Expect(asked).NotTo(BeEmpty())
			for _, r := range asked {
				for _, entry := range entries {
					name, _, _ := strings.Cut(entry, ":")
					r.Header.Del(name)
				}
				Expect(r.Header).NotTo(ContainElement(ContainElement(ContainSubstring(apiKey))))
				Expect(r.Header).NotTo(HaveKey("Authorization"))
			}
			Expect(upstream.Wire()).To(ContainSubstring(wire))
			upstream.Revoke()
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
			world.Stop()
			places := filesOf(world.Dir)
			places["log"], places["responses"] = []byte(world.Log.String()), []byte(tape.String())
			Expect(places["responses"]).To(ContainSubstring(tokens.Access))
			for place, content := range places {
				for _, spelled := range append(spellings(apiKey), spellings("user:"+apiKey)...) {
					Expect(string(content)).NotTo(ContainSubstring(spelled), place)
				}
			}
		},
		Entry("a header of its own", headerAfter("X-Api-Key", ""), "X-Api-Key: "+apiKey, "X-Api-Key: {token}"),
		Entry("another scheme", headerAfter("Authorization", "Token "), "Authorization: Token "+apiKey,
			"Authorization: Token {token}"),
		Entry("Basic with a user", basicPassword("user"), "Authorization: Basic ",
			"Authorization: Basic {base64(user:token)}"),
		Entry("two headers", func(r *http.Request) string {
			if r.Header.Get("X-Tenant") != "{acme}" {
				return ""
			}
			return r.Header.Get("X-Api-Key")
		}, "X-Tenant: {acme}", "X-Api-Key: {token}", "X-Tenant: {{acme}}"),
		Entry("a cookie", func(r *http.Request) string {
			cookie, err := r.Cookie("session")
			if err != nil {
				return ""
			}
			return cookie.Value
		}, "Cookie: session="+apiKey, "Cookie: session={urlquery(token)}"),
		Entry("a query parameter", func(r *http.Request) string {
			return r.URL.Query().Get("api_key")
		}, "/mcp?api_key="+apiKey, "?api_key={token}"),
	)

	DescribeTable("encodes odd characters once:",
		func(ctx SpecContext, keyOf func(*http.Request) string, entry string) {
			upstream := NewUpstreamReading(keyOf, oddKey)
			world := NewGateway(upstream.URL+"/mcp?kept=a+b", presenting(entry), func(c *service.Config) {
				c.Verification.Verifier, c.Verification.TokenFile = service.VerifierFile, tokenFileOf(ctx, oddKey)
			})
			world.Token = oddKey
			Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			Expect(upstream.Asked()[0].URL.Query()["kept"]).To(Equal([]string{"a b"}))
		},
		Entry("in a query parameter", func(r *http.Request) string { return r.URL.Query().Get("key") }, "?key={token}"),
		Entry("in a header with urlquery", func(r *http.Request) string {
			key, _ := url.PathUnescape(r.Header.Get("X-Key"))
			return key
		}, "X-Key: {urlquery(token)}"),
	)

	It("sends the secret of credential static in the same way, with the signed caller",
		Label("U7"), func(ctx SpecContext) {
			upstream := NewUpstreamReading(headerAfter("X-Api-Key", ""), apiKey)
			world := NewGateway(upstream.URL+"/mcp", static(ada("token-of-ada")), presenting("X-Api-Key: {token}"))
			world.Token = "token-of-ada"
			Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			asked := upstream.Asked()[0]
			Expect(signedBy(signingSecret, asked)).To(BeTrue())
			Expect(asked.Header).NotTo(HaveKey("Authorization"))
		})

	It("does not let a client set the header or the parameter", Label("U5"), func(ctx SpecContext) {
		upstream := NewUpstreamReading(headerAfter("X-Api-Key", ""), apiKey)
		world := NewGateway(upstream.URL+"/mcp?page=1", presenting("X-Api-Key: {token}", "?page={token}"))
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		Expect(talk.Post(ctx, "tools/list", params{}, func(r *http.Request) {
			r.URL.RawQuery = "page=mallory"
		}).StatusCode).To(Equal(http.StatusBadRequest))
		Expect(talk.Post(ctx, "tools/list", params{}, with("X-Api-Key", "mallory")).StatusCode).To(Equal(http.StatusOK))
		asked := upstream.Asked()[0]
		Expect(asked.Header["X-Api-Key"]).To(Equal([]string{apiKey}))
		Expect(asked.URL.Query()).
			To(Equal(url.Values{"page": {apiKey}}), "the upstream's own parameter of that name is replaced")
	})

	It("keeps a query parameter out of the log and of errors", Label("U9", "N13"), func(ctx SpecContext) {
		tape := NewTape()
		upstream := NewUpstreamReading(func(r *http.Request) string { return r.URL.Query().Get("key") }, apiKey)
		world := NewGateway(upstream.URL+"/mcp", presenting("?key={token}"))
		access := world.NewClient().Connect(ctx).Access
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", r.URL.String()+"/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		Expect(world.Call(ctx, access).StatusCode).To(Equal(http.StatusBadGateway))
		upstream.Close()
		Expect(world.Call(ctx, access).StatusCode).To(Equal(http.StatusBadGateway))
		Expect(world.NewClient().Consent(ctx).Approve(ctx, apiKey).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(world.Log.String()).To(And(ContainSubstring("it redirects"), ContainSubstring("cannot verify tokens"),
			Not(ContainSubstring(apiKey))))
		Expect(tape.String()).NotTo(ContainSubstring(apiKey))
	})
})

var _ = Describe("A mistake in present", Label("gateway", "configuration", "U19"), func() {
	BeforeEach(func() { workingFolder() })

	DescribeTable("is reported at the start with the line and the remedy:",
		func(ctx SpecContext, entry, remedy string) {
			write("pasteport.yaml", "upstream:\n- http://127.0.0.1:9000/mcp\nforward-headers: "+
				"[X-Toolsets]\npresent:\n- 'X-First: {token}'\n- '"+strings.ReplaceAll(entry, "'", "''")+"'\n")
			dir := filepath.Join(GinkgoT().TempDir(), "data")
			ran := Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0", "--data="+dir)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(ContainSubstring("present (from pasteport.yaml:4)" + remedy))
			Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
			Expect(dir).NotTo(BeADirectory())
		},
		Entry("no header", "s3cret", `: number 2: it is not a header: write it like "X-Api-Key: {token}"`),
		Entry("no value", "X-Api-Key:", ": number 2: the header X-Api-Key has no value"),
		Entry("a key in place of a field", "X-Api-Key: {s3cret-key-of-the-operator}",
			": number 2: it has an unknown field: write {token}"),
		Entry("an unknown function", "X-Api-Key: s3cret {md5(token)}",
			": number 2: it has an unknown function md5: choose base64 or urlquery"),
		Entry("an open brace", "X-Api-Key: s3cret {token",
			": number 2: a brace has no counterpart: write {token}, and {{ or }} for a brace itself"),
		Entry("an open quote", "X-Api-Key: {base64('s3cret:token)}", ": number 2: a quote has no end"),
		Entry("a function without a field", "X-Api-Key: {base64(s3cret)}",
			": number 2: base64 has no field in its parentheses"),
		Entry("the Host", "Host: {token}",
			": number 2: the gateway itself sets or forwards the header Host: choose another"),
		Entry("a header of Pasteport", "X-Pasteport-Subject: {token}",
			": number 2: the gateway itself sets or forwards the header X-Pasteport-Subject"),
		Entry("a header twice", "x-first: s3cret",
			": number 2: an entry before it sets the header X-First already: keep one"),
	)

	DescribeTable("that concerns other settings is reported too:",
		func(ctx SpecContext, remedy string, args ...string) {
			ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0",
				"--upstream=http://127.0.0.1:9000/mcp"}, args...)...)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(ContainSubstring(remedy))
		},
		Entry("no entry has the token", "--present: no entry has {token}, so that the server would not get it",
			"--present=X-Api-Key: tokn"),
		Entry("a parameter twice", "--present: number 2: an entry before it sets the query parameter key already",
			"--present=?key={token}", "--present=?key={token}"),
		Entry("a line break in a value", "--present: the header X-Api-Key has no value or a control character",
			"--present=\"X-Api-Key: {token}\nX-Admin: 1\""),
		Entry("a forwarded header", `--forward-headers has "x-api-key", which present sets`,
			"--present=X-Api-Key: {token}", "--forward-headers=x-api-key"),
		Entry("a forwarded parameter", `--forward-parameters has "key": write the name of a query parameter that `+
			`present does not set`,
			"--present=?key={token}", "--forward-parameters=key"),
		Entry("no credential", `--present is set, but the credential is "none": leave it out`,
			"--present=X-Api-Key: {token}", "--credential=none"),
	)

	It("is a mapping in place of a text", func(ctx SpecContext) {
		write("pasteport.yaml", "upstream:\n- http://127.0.0.1:9000/mcp\npresent:\n- X-Api-Key: '{token}'\n")
		Expect(Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0").Err).
			To(ContainSubstring(`write a list of texts in quotes such as 'X-Api-Key: {token}'`))
	})
})
