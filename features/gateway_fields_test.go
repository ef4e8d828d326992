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

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func askingFor(fields []bootstrap.HostField, present ...string) func(*service.Config) {
	return func(c *service.Config) { c.HostFields, c.Gateway.Present = fields, present }
}

// basicCredentials returns user:password of HTTP Basic authentication.
func basicCredentials(r *http.Request) string {
	user, password, _ := r.BasicAuth()
	return user + ":" + password
}

func (p Page) enter(ctx context.Context, fields ...string) Response {
	GinkgoHelper()
	return p.Submit(ctx, entering("approve", fields))
}

func entering(decision string, fields []string) url.Values {
	form := url.Values{"decision": {decision}}
	for i := 0; i < len(fields); i += 2 {
		form.Set("field_"+fields[i], fields[i+1])
	}
	return form
}

// ConnectWith approves with the fields and redeems the code.
func (c *Client) ConnectWith(ctx context.Context, fields ...string) Tokens {
	GinkgoHelper()
	answer := c.Consent(ctx).enter(ctx, fields...)
	Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
	return c.Token(ctx, c.Exchange(answer.Target().Query().Get("code"))).Tokens()
}

var userAndKey = []bootstrap.HostField{
	{
		Name:    "user",
		Help:    "As in your profile",
		Pattern: "[a-z]+",
		Default: "guest",
	}, {Name: "org", Label: "Organisation", Optional: true},
	{Name: "token", Label: "Key", Secret: true},
}

var addressUserAndKey = append([]bootstrap.HostField{
	{Name: "url", Help: "Where you sign in, such as acme.example.com"},
}, userAndKey[0], userAndKey[2])

var _ = Describe("Asking for several fields", Label("gateway", "B23", "J16", "U29"), func() {
	const ann, bob = "the-long-key-of-ann-1234", "key-of-bob-5678"
	presented := []string{"Authorization: Basic {base64(user:token)}", "X-Org: {org}"}

	It("sends each person's own values to the upstream, and keeps them from everything else",
		Label("J13", "N13", "J11"), func(ctx SpecContext) {
			tape := NewTape()
			upstream := NewUpstreamReading(basicCredentials, "ann:"+ann, "bob:"+bob)
			world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...))
			client := world.NewClient()
			for _, person := range [][]string{{"user", "ann", "token", " " + ann, "org", "acme"},
				{"user", "bob", "token", "Bearer " + bob, "org", ""}} {
				tokens := client.ConnectWith(ctx, person...)
				tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
				Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
				asked := upstream.Asked()
				last := asked[len(asked)-1]
				token := strings.TrimSpace(strings.TrimPrefix(person[3], "Bearer "))
				Expect(basicCredentials(last)).To(Equal(person[1] + ":" + token))
				Expect(last.Header["X-Org"]).To(Equal(map[string][]string{"ann": {"acme"}}[person[1]]),
					"an optional field without a value is not sent")
			}
			world.Stop()
			places := filesOf(world.Dir)
			places["log"], places["responses"] = []byte(world.Log.String()), []byte(tape.String())
			for place, content := range places {
				for _, spelled := range append(spellings(ann), spellings("ann:"+ann)...) {
					Expect(string(content)).NotTo(ContainSubstring(spelled), place)
				}
			}
		})

	It("ends the access of a person whose key the upstream does not know any more",
		Label("U17"), func(ctx SpecContext) {
			upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
			world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...))
			tokens := world.NewClient().ConnectWith(ctx, "user", "ann", "token", ann)
			Expect(world.NewClient().Consent(ctx).enter(ctx, "user", "bob", "token", ann)).
				To(BeAPage(http.StatusForbidden, "This site does not accept these values."))
			upstream.Revoke()
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		})

	It("ends connections that lack a field which the operator has added", func(ctx SpecContext) {
		upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
		fields := userAndKey
		world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) { askingFor(fields, presented...)(c) })
		client := world.NewClient()
		used, unused := client.ConnectWith(ctx, "user", "ann", "token", ann),
			client.ConnectWith(ctx, "user", "ann", "token", ann)
		fields = slices.Clone(userAndKey)
		fields[1].Optional = false
		world.Restart()
		before := len(upstream.Asked())
		Expect(world.Call(ctx, used.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(upstream.Asked()).To(HaveLen(before))
		Expect(client.Token(ctx, client.Refresh(unused.Refresh))).
			To(HaveField("Text", ContainSubstring("invalid_grant")))
	})

	It("shows each field with its label, help and default", func(ctx SpecContext) {
		upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
		world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...))
		page := world.NewClient().Consent(ctx).Text
		Expect(page).To(MatchRegexp(`(?s)<label for="field_user">\s*<bdi>\s*User name\s*</bdi>`))
		Expect(page).To(ContainSubstring(`<p class="small" id="field_user_help">As in your profile</p>`))
		Expect(page).To(
			MatchRegexp(`<input type="text" id="field_user" name="field_user" value="guest"[^>]* required ` +
				`aria-describedby="field_user_help why">`))
		Expect(page).To(MatchRegexp(`(?s)Organisation\s*</bdi>\s* \(optional\)`))
		Expect(page).To(
			MatchRegexp(`<input type="text" id="field_org"[^>]*"none" spellcheck="false" aria-describedby="why">`))
		Expect(page).To(MatchRegexp(`<input type="password" id="field_token" name="field_token" value=""`))
		Expect(page).NotTo(ContainSubstring("bearer_token"))
	})

	DescribeTable("refuses at its field, before anything is verified,",
		func(ctx SpecContext, field, sentence string, entered ...string) {
			upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
			world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...))
			consent := world.NewClient().Consent(ctx)
			answer := consent.enter(ctx, entered...)
			Expect(answer.StatusCode).To(BeElementOf(http.StatusBadRequest, http.StatusForbidden))
			Expect(answer.Text).To(MatchRegexp(`id="field_` + field + `"[^>]* aria-describedby="field_` + field +
				`_problem [^"]*why" aria-invalid="true" autofocus>\s*<p class="problem" id="field_` + field +
				`_problem">` + sentence))
			Expect(strings.Count(answer.Text, "autofocus")).To(Equal(1))
			Expect(answer.Text).NotTo(ContainSubstring(ann))
			Expect(answer.Text).To(ContainSubstring(`value="` + entered[1] + `"`))
			Expect(upstream.Asked()).To(BeEmpty())
			Expect(ReadPage(answer).enter(ctx, "user", "ann", "token", ann).StatusCode).To(Equal(http.StatusSeeOther))
		},
		Entry("a missing value", "token", "Fill in this field.", "user", "ann", "token", " "),
		Entry("a value that does not match the pattern", "user", "This does not look right.", "user", "Ann",
			"token", ann),
		Entry("a control character", "token", "It contains a line break or another control character.", "user", "ann",
			"token", ann+"\x00"),
	)

	It("counts and ends the connections of a key whatever the fields are that were not verified",
		Label("J10", "J14"), func(ctx SpecContext) {
			upstream := NewUpstreamReading(basicCredentials, "ann:"+ann, "bob:"+ann)
			world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...), func(c *service.Config) {
				c.Verification.Verifier, c.Verification.TokenFile = service.VerifierFile, tokenFileOf(ctx, ann)
				c.Limits.MaxGrantsPerToken = 2
			})
			client := world.NewClient()
			first := client.ConnectWith(ctx, "user", "ann", "token", ann)
			world.Clock.Advance(time.Second)
			second := client.ConnectWith(ctx, "user", "bob", "token", ann)
			world.Clock.Advance(time.Second)
			third := client.ConnectWith(ctx, "user", "ann", "token", ann, "org", "acme")
			Expect(world.Call(ctx, first.Access)).To(BeChallenged(world, "invalid_token"))
			Expect(world.Call(ctx, second.Access).StatusCode).To(Equal(http.StatusOK))
			page := ReadPage(Get(ctx, world.Issuer+"/oauth/connections"))
			Expect(page.Text).NotTo(ContainSubstring("field_user"))
			Expect(strings.Count(page.Submit(ctx, entering("show", []string{"token", ann})).Text,
				">End this connection<")).To(Equal(2))
			Expect(world.service.Authz.EndGrantsOf(ctx, ann)).To(Equal(2))
			Expect(world.Call(ctx, third.Access)).To(BeChallenged(world, "invalid_token"))
		})

	It("ends connections with a field that the operator has removed", func(ctx SpecContext) {
		upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
		fields, present := userAndKey, presented
		world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) { askingFor(fields, present...)(c) })
		tokens := world.NewClient().ConnectWith(ctx, "user", "ann", "token", ann, "org", "acme")
		fields, present = []bootstrap.HostField{userAndKey[0], userAndKey[2]}, presented[:1]
		world.Restart()
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
	})

	It("is checked by doctor with all fields", Label("doctor"), func(ctx SpecContext) {
		upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
		world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...))
		args := []string{world.MCP(), "--token", ann}
		asked := Diagnose(ctx, args...)
		Expect(asked.Of("login").Seen).To(Equal(`the site asks for "org" besides the token`))
		Expect(asked.Of("login").Fix).To(ContainSubstring("--field org="))
		done := Diagnose(ctx, append(args, "--field=user=ann", "--field=org=")...)
		Expect(done.With("failed")).To(BeEmpty(), done.Out)
		Expect(done.Code).To(BeZero())
		Expect(done.Out).NotTo(ContainSubstring(ann))
	})

	It("finds and ends connections by the same fields, in any language", Label("J10"), func(ctx SpecContext) {
		upstream := NewUpstreamReading(basicCredentials, "ann:"+ann)
		world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey, presented...))
		client := world.NewClient()
		tokens := client.ConnectWith(ctx, "user", "ann", "token", ann)
		page := ReadPage(visit(ctx, world.Issuer+"/oauth/connections", "de"))
		Expect(page.Text).To(And(ContainSubstring("Benutzername"), Not(ContainSubstring("field_org")),
			Not(ContainSubstring("bearer_token"))))
		Expect(page.Submit(ctx, entering("show", []string{"user", "bob", "token", ann})).Text).
			To(ContainSubstring("No app is connected with these values"))
		Expect(page.Submit(ctx, entering("show", []string{"user", "ann", "token", ann})).Text).
			To(ContainSubstring(">End this connection<"))
		_, err := world.service.Authz.EndGrantsOf(ctx, ann)
		Expect(err).To(MatchError(ContainSubstring("the field user is missing")))
		Expect(world.service.Authz.EndGrantsOfFields(ctx, map[string]string{"user": "ann", "token": ann})).To(Equal(1))
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
	})
})

var _ = Describe("A mistake in fields", Label("gateway", "configuration", "U29", "F9"), func() {
	BeforeEach(func() { workingFolder() })

	DescribeTable("is reported at the start with the line and the remedy:",
		func(ctx SpecContext, settings, remedy string) {
			write("pasteport.yaml", settings)
			ran := Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0")
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(ContainSubstring(remedy))
		},
		Entry("an unknown key", "upstream: http://127.0.0.1:9000/mcp\nfields: [{name: token, labl: x}]\n",
			`fields (from pasteport.yaml:2): number 1 has the unknown key "labl": write name, label`),
		Entry("a text", "upstream: http://127.0.0.1:9000/mcp\nfields: [user]\n",
			`fields (from pasteport.yaml:2) is "user": write a list of mappings such as {name: user}`),
		Entry("no secret", "upstream: http://127.0.0.1:9000/mcp\nfields: [{name: user}]\npresent: 'X-User: {user}'\n",
			"fields (from pasteport.yaml:2): no field is required and secret"),
		Entry("a field that present does not use",
			"upstream: http://127.0.0.1:9000/mcp\nfields: [{name: user}, {name: token}]\n",
			"present: no entry has {user}, so that the server would not get it"),
		Entry("no token for a verifier of tokens", "upstream: http://127.0.0.1:9000/mcp\nverifier: http\nverify-url: "+
			"https://cms.example.com/\nfields: [{name: key, secret: true}]\npresent: 'X-Key: {key}'\n",
			`fields (from pasteport.yaml:4) has no required field "token", which is the only one that the verifier `+
				`verifies`),
		Entry("a field in the address of the upstream", "upstream: '{url}/mcp'\nfields: [{name: url}, {name: token}]\n",
			"upstream (from pasteport.yaml:1): "),
	)

	It("is not a missing token when the upstream verifies every field", func(ctx SpecContext) {
		write("pasteport.yaml", "upstream: http://127.0.0.1:9000/mcp\nfields: [{name: user}, {name: password}]\n"+
			"present: 'Authorization: Basic {base64(user:password)}'\n")
		Expect(Run(ctx, "config", "--issuer=https://cms.example.com").Settings()).To(HaveKey("fields"))
		Expect(Run(ctx, "config", "--issuer=https://cms.example.com", "--verifier=http",
			"--verify-url=https://cms.example.com/token").Err).
			To(ContainSubstring(`fields (from pasteport.yaml:2) has no required field "token"`))
	})
})
