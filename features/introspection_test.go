package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

var _ = Describe("Introspecting a token for an MCP server elsewhere", Label("RFC 7662"), func() {
	const notes, files = "https://notes.example.com/mcp", "https://files.example.com/mcp"
	const notesSecret, filesSecret = "notes-secret-of-32-characters-000", "files-secret-of-32-characters-000"
	var world *World
	var client *Client
	BeforeEach(func(ctx SpecContext) {
		people := NewTokenFile(ctx, []string{editorToken, "--subject=ada", "--role=editor", "--scope=notes:write"})
		world = NewWorld(people.verify, behind("127.0.0.1/32"), func(c *service.Config) {
			c.EditorToken = ""
			c.ResourceServers = []service.ResourceServer{
				{
					URL:    notes,
					Name:   "Notes",
					Secret: notesSecret,
					Scopes: []string{"notes:read = Read", "notes:write notes:read = Write"},
				},
				{URL: files, Secret: filesSecret},
			}
		})
		client = world.NewClient()
	})
	asking := func(change url.Values) func(url.Values) {
		return func(parameters url.Values) {
			for name, values := range change {
				parameters[name] = values
			}
		}
	}
	connect := func(ctx context.Context, scope string) Tokens {
		GinkgoHelper()
		code := client.Authorize(ctx, asking(url.Values{"resource": {notes}, "scope": {scope}}))
		form := client.Exchange(code)
		form.Set("resource", notes)
		answer := client.Token(ctx, form)
		Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
		return answer.Tokens()
	}
	introspect := func(ctx context.Context, resource, secret, token string, change ...func(*http.Request)) Response {
		GinkgoHelper()
		return Post(ctx, world.Issuer+"/oauth/introspect", url.Values{"token": {token}},
			append(change, func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(resource), secret) })...)
	}
	inactive := `{"active":false}` + "\n"

	It("tells who calls, with which client, scopes and roles, and never the site's token", Label("K1"),
		func(ctx SpecContext) {
			tokens := connect(ctx, "notes:read offline_access")
			answer := introspect(ctx, notes, notesSecret, tokens.Access)
			Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
			Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
			var claims map[string]any
			Expect(json.Unmarshal([]byte(answer.Text), &claims)).To(Succeed())
			now := float64(world.Clock.Now().Unix())
			Expect(claims).To(And(HaveLen(12), HaveKeyWithValue("iat", BeNumerically("~", now, 5)),
				HaveKeyWithValue("exp", BeNumerically("~", now+3600, 5))))
			delete(claims, "iat")
			delete(claims, "exp")
			Expect(claims).To(Equal(map[string]any{
				"active":      true,
				"scope":       "notes:read offline_access",
				"client_id":   client.ID,
				"client_name": "Spec Client",
				"token_type":  "Bearer",
				"sub":         "ada",
				"username":    "ada",
				"roles":       []any{"editor"},
				"aud":         notes,
				"iss":         world.Issuer,
			}))
			Expect(answer.Text).NotTo(ContainSubstring(editorToken))
		})

	It("names the scopes that others imply", Label("K1"), func(ctx SpecContext) {
		Expect(introspect(ctx, notes, notesSecret, connect(ctx, "notes:write").Access).Text).
			To(MatchRegexp(`"scope":"(notes:read notes:write|notes:write notes:read)"`))
	})

	It("has one answer for every token that is not valid at this server", Label("K2"), func(ctx SpecContext) {
		tokens := connect(ctx, "notes:read offline_access")
		code := client.Authorize(ctx, asking(url.Values{"resource": {notes}, "scope": {"notes:read"}}))
		other := NewWorld()
		for _, token := range []string{other.NewClient().Connect(ctx).Access, tokens.Refresh, code, editorToken,
			"ppa_" + strings.Repeat("A", 43), tokens.Access + "x", tokens.Access[:len(tokens.Access)-1], "x y\n"} {
			answer := introspect(ctx, notes, notesSecret, token)
			Expect(answer.StatusCode).To(Equal(http.StatusOK))
			Expect(answer.Text).To(Equal(inactive))
		}
		Expect(introspect(ctx, files, filesSecret, tokens.Access).Text).To(Equal(inactive))
		Expect(introspect(ctx, notes, notesSecret, tokens.Access).Text).To(ContainSubstring(`"active":true`))
		world.Clock.Advance(2 * time.Hour)
		Expect(introspect(ctx, notes, notesSecret, tokens.Access).Text).To(Equal(inactive))
	})

	It("is inactive as soon as a token is revoked, within a second on other replicas", Label("K2", "stores"),
		func(ctx SpecContext) {
			tokens, replica := connect(ctx, "notes:read offline_access"), world.Replica()
			there := func(r *http.Request) { r.URL.Host = strings.TrimPrefix(replica.Address, "http://") }
			Expect(introspect(ctx, notes, notesSecret, tokens.Access).Text).To(ContainSubstring(`"active":true`))
			Expect(introspect(ctx, notes, notesSecret, tokens.Access, there).Text).To(ContainSubstring(`"active":true`))
			Expect(Post(ctx, world.Issuer+"/oauth/revoke",
				url.Values{"token": {tokens.Refresh}, "client_id": {client.ID}}).StatusCode).To(Equal(http.StatusOK))
			Expect(introspect(ctx, notes, notesSecret, tokens.Access).Text).To(Equal(inactive))
			Eventually(func() string { return introspect(ctx, notes, notesSecret, tokens.Access, there).Text }).
				WithTimeout(1500 * time.Millisecond).Should(Equal(inactive))
		})

	It("refuses servers without the right secret, and answers a flood of them with 429", Label("K3"),
		func(ctx SpecContext) {
			token := connect(ctx, "notes:read").Access
			world.Clock.Stop()
			wrong := func(resource, secret string) Response {
				return introspect(ctx, resource, secret, token, forwarded(office))
			}
			for _, pair := range [][]string{{notes, filesSecret}, {files, notesSecret + "0"}, {notes, ""},
				{"https://other.example.com/mcp", notesSecret}, {world.Issuer + "/mcp", notesSecret},
				{"", notesSecret}} {
				answer := wrong(pair[0], pair[1])
				Expect(answer).To(BeRefusedAs(http.StatusUnauthorized, "invalid_client"), "%v", pair)
				Expect(answer.Header.Get("WWW-Authenticate")).To(HavePrefix("Basic"))
				Expect(answer.Text).NotTo(ContainSubstring("active"))
			}
			inBody := url.Values{"token": {token}, "client_id": {notes}, "client_secret": {notesSecret}}
			Expect(Post(ctx, world.Issuer+"/oauth/introspect", inBody, forwarded(office))).
				To(BeRefusedAs(http.StatusUnauthorized, "invalid_client"))
			for range quota.UnknownTokensPerMinute {
				wrong(notes, filesSecret)
			}
			refused := wrong(notes, filesSecret)
			Expect(refused.StatusCode).To(Equal(http.StatusTooManyRequests), refused.Text)
			Expect(refused.Header.Get("Retry-After")).NotTo(BeEmpty())
			Expect(wrong(notes, notesSecret).Text).To(ContainSubstring(`"active":true`))
			Expect(world.Log.String()).NotTo(ContainSubstring(filesSecret))
		})

	It("does not try out the site's own tokens, even if MCP servers of the process accept them", Label("K2"),
		func(ctx SpecContext) {
			world = NewWorld(func(c *service.Config) {
				c.AcceptHostTokens = true
				c.MoreServers = []oauth.ProtectedServer{{Resource: notes, Secret: notesSecret}}
			})
			Expect(world.Call(ctx, editorToken).StatusCode).To(Equal(http.StatusOK))
			Expect(introspect(ctx, notes, notesSecret, editorToken).Text).To(Equal(inactive))
		})

	It("takes the form of a POST only", Label("K4"), func(ctx SpecContext) {
		Expect(Get(ctx, world.Issuer+"/oauth/introspect").StatusCode).To(Equal(http.StatusMethodNotAllowed))
		Expect(introspect(ctx, notes, notesSecret, "")).To(BeRefusedAs(http.StatusBadRequest, "invalid_request"))
		Expect(Post(ctx, world.Issuer+"/oauth/introspect?token=ppa_x", url.Values{})).
			To(BeRefusedAs(http.StatusBadRequest, "invalid_request"))
	})

	It("is in the metadata, whose server serves no MCP", Label("K5", "F4"), func(ctx SpecContext) {
		metadata := Get(ctx, world.Issuer+"/.well-known/oauth-authorization-server")
		var document map[string]any
		Expect(json.Unmarshal([]byte(metadata.Text), &document)).To(Succeed())
		Expect(document).To(And(
			HaveKeyWithValue("introspection_endpoint", world.Issuer+"/oauth/introspect"),
			HaveKeyWithValue("introspection_endpoint_auth_methods_supported", ConsistOf("client_secret_basic")),
			HaveKeyWithValue("protected_resources", ConsistOf(notes, files)),
			HaveKeyWithValue("scopes_supported", ConsistOf("notes:read", "notes:write", "mcp", "offline_access"))))
		for _, path := range []string{"/mcp", "/.well-known/oauth-protected-resource/mcp"} {
			Expect(Get(ctx, world.Issuer+path).StatusCode).To(Equal(http.StatusNotFound))
		}
	})

	It("shows the connection as complete once the server has asked", Label("K6", "T2"), func(ctx SpecContext) {
		tokens := connect(ctx, "notes:read")
		introspect(ctx, notes, notesSecret, tokens.Access)
		Eventually(func() (kinds []string) {
			for _, attempt := range must(world.service.Authz.Trace(ctx)) {
				for _, step := range attempt.Steps {
					kinds = append(kinds, string(step.Kind))
				}
			}
			return kinds
		}).Should(ContainElement("call"))
	})

	It("leaves such a server out of the plot of calls", Label("K6"), func(ctx SpecContext) {
		operated := Operate(func(c *service.Config) {
			c.MoreServers = []oauth.ProtectedServer{{Resource: notes, Secret: notesSecret}}
		})
		Expect(operated.AskAdmin(ctx, "/").Text).To(And(ContainSubstring(operated.MCP()), Not(ContainSubstring(notes))))
	})

	DescribeTable("is refused at the start, with the setting and without the secret, when",
		func(ctx SpecContext, said string, args ...string) {
			ran := Run(ctx, append([]string{"server", "--dev", "--verifier=http", "--verify-url=http://127.0.0.1:1/",
				"--data=" + GinkgoT().TempDir()}, args...)...)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(And(ContainSubstring(said), Not(ContainSubstring(notesSecret))))
		},
		Entry("no MCP server is named", "name them in resource-servers"),
		Entry("a secret is not set off", `--resource-servers is [hidden]: write a list of servers`,
			"--resource-servers="+notes+"="+notesSecret),
		Entry("a secret is short", "--resource-servers of https://notes.example.com/mcp has 5 characters",
			"--resource-servers="+notes+" = short"),
		Entry("two servers share one", "is that of another server", "--resource-servers="+notes+" = "+notesSecret,
			"--resource-servers="+files+" = "+notesSecret),
		Entry("a server has no URL", "--resource-servers: number 1: it needs a url",
			`--resource-servers={"name": "Notes", "secret": "`+notesSecret+`"}`),
		Entry("a URL is not exact", `--resource-servers "https://notes.example.com/mcp/" ends with a slash`,
			"--resource-servers="+notes+"/ = "+notesSecret),
	)

	It("is refused at the start when a setting has no effect on servers elsewhere", func(ctx SpecContext) {
		GinkgoT().Setenv("PASTEPORT_MAX_SESSIONS", "5")
		GinkgoT().Setenv("PASTEPORT_CREDENTIAL", "none")
		GinkgoT().Setenv("PASTEPORT_ALLOWED_ORIGINS", "")
		Expect(Run(ctx, "server", "--dev", "--verifier=http", "--verify-url=http://127.0.0.1:1/",
			"--data="+GinkgoT().TempDir(), "--resource-servers="+notes+" = "+notesSecret).Err).To(And(
			ContainSubstring("PASTEPORT_MAX_SESSIONS is set, but the MCP servers of resource-servers are elsewhere"),
			ContainSubstring("PASTEPORT_CREDENTIAL is set, but"), Not(ContainSubstring("ALLOWED_ORIGINS"))))
	})
})
