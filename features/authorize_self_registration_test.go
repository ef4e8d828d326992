package features_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

func selfRegistration(config *service.Config) { config.SelfRegistration = true }

// Register sends the members of a registration request; change may alter the request.
func (w *World) Register(ctx context.Context, members any, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return w.RegisterText(ctx, string(must(json.Marshal(members))), change...)
}

func (w *World) RegisterText(ctx context.Context, body string, change ...func(*http.Request)) Response {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, w.Issuer+"/oauth/register", bytes.NewBufferString(body)))
	r.Header.Set("Content-Type", "application/json")
	for _, apply := range change {
		apply(r)
	}
	return Send(r)
}

// RegisterClient returns a client that has registered itself, with the redirect URI of its requests
// and perhaps others.
func (w *World) RegisterClient(ctx context.Context, redirect string, others ...string) *Client {
	GinkgoHelper()
	client := w.NewClient()
	answer := w.Register(ctx,
		map[string]any{"client_name": "Spec Client", "redirect_uris": append([]string{redirect}, others...)})
	Expect(answer.StatusCode).To(Equal(http.StatusCreated), answer.Text)
	client.ID, client.Redirect = decode(answer)["client_id"].(string), redirect
	return client
}

// unrepeated returns a text that does not compress.
func unrepeated(length int) string {
	random := make([]byte, length)
	_, _ = rand.Read(random) // it never fails
	return base64.RawURLEncoding.EncodeToString(random)[:length]
}

var _ = Describe("Registering clients", Label("RFC 7591"), func() {
	const loopback, callback = "http://127.0.0.1:4321/callback", "https://app.example/callback"
	var world *World
	BeforeEach(func() { world = NewWorld(selfRegistration) })

	It("is in the metadata only when the operator allows it", Label("L1", "F4"), func(ctx SpecContext) {
		const metadata = "/.well-known/oauth-authorization-server"
		Expect(decode(Get(ctx, world.Issuer+metadata))).
			To(HaveKeyWithValue("registration_endpoint", world.Issuer+"/oauth/register"))
		client, closed := world.RegisterClient(ctx, loopback), NewWorld()
		Expect(decode(Get(ctx, closed.Issuer+metadata))).NotTo(HaveKey("registration_endpoint"))
		Expect(closed.Register(ctx, map[string]any{"redirect_uris": []string{callback}}).StatusCode).
			To(Equal(http.StatusNotFound))
		Expect(Get(ctx, strings.Replace(client.ID, world.Issuer, closed.Issuer, 1)).StatusCode).
			To(Equal(http.StatusNotFound))
	})

	It("answers what it has accepted, to every origin", Label("L6"), func(ctx SpecContext) {
		answer := world.Register(ctx, map[string]any{
			"client_name":                "An app",
			"redirect_uris":              []string{callback, "some-app:/callback"},
			"token_endpoint_auth_method": "client_secret_jwt",
			"grant_types":                []string{"authorization_code", "refresh_token", "client_credentials"},
			"response_types":             []string{"code", "token"},
			"software_statement":         "x",
		})
		Expect(answer.StatusCode).To(Equal(http.StatusCreated))
		Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
		Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(answer.Header.Get("Access-Control-Allow-Origin")).To(Equal("*"))
		members := decode(answer)
		Expect(members["client_id_issued_at"]).To(BeNumerically("~", world.Clock.Now().Unix(), 60))
		delete(members, "client_id_issued_at")
		Expect(members).To(Equal(map[string]any{
			"client_id":                  members["client_id"],
			"client_name":                "An app",
			"redirect_uris":              []any{callback},
			"grant_types":                []any{"authorization_code", "refresh_token"},
			"response_types":             []any{"code"},
			"token_endpoint_auth_method": "none",
			"self_registered":            true,
		}))
		Expect(members["client_id"]).To(HavePrefix(world.Issuer + "/oauth/clients/"))

		preflight := request(ctx, http.MethodOptions, world.Issuer+"/oauth/register",
			http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"POST"}})
		Expect(preflight.StatusCode).To(Equal(http.StatusNoContent))
		Expect(preflight.Header.Get("Access-Control-Allow-Headers")).To(ContainSubstring("Content-Type"))
	})

	It("publishes the document of each client at its client_id, and nothing beside it",
		Label("L2"), func(ctx SpecContext) {
			client := world.RegisterClient(ctx, callback, loopback)
			answer := Get(ctx, client.ID)
			Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
			Expect(decode(answer)).To(Equal(map[string]any{
				"client_id":                  client.ID,
				"client_name":                "Spec Client",
				"redirect_uris":              []any{callback, loopback},
				"grant_types":                []any{"authorization_code", "refresh_token"},
				"response_types":             []any{"code"},
				"token_endpoint_auth_method": "none",
				"self_registered":            true,
			}))
			Expect(request(ctx, http.MethodHead, client.ID, nil).StatusCode).To(Equal(http.StatusOK))
			Expect(request(ctx, http.MethodDelete, client.ID, nil).StatusCode).To(Equal(http.StatusMethodNotAllowed))
			for _, other := range []string{"?", "?x=1", "/", "/x", "%2F..", "A"} {
				Expect(Get(ctx, client.ID+other).StatusCode).To(Equal(http.StatusNotFound), other)
			}
		})

	DescribeTable("refuses",
		Label("L3"), func(ctx SpecContext, status int, code, body string, change ...func(*http.Request)) {
			answer := world.RegisterText(ctx, body, change...)
			Expect(answer.StatusCode).To(Equal(status), answer.Text)
			Expect(decode(answer)["error"]).To(Equal(code))
			Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
		},
		Entry("another media type", 400, "invalid_client_metadata",
			`{"redirect_uris":["https://app.example/callback"]}`,
			func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }),
		Entry("a duplicate member", 400, "invalid_client_metadata",
			`{"redirect_uris":["https://app.example/callback"],"redirect_uris":["https://app.example/callback"]}`),
		Entry("a body of more than 32 KiB", 413, "invalid_client_metadata",
			`{"redirect_uris":["https://app.example/callback"],"x":"`+strings.Repeat("x", 32<<10)+`"}`),
		Entry("nine levels", 400, "invalid_client_metadata",
			`{"redirect_uris":["https://app.example/callback"],"x":[[[[[[[[]]]]]]]]}`),
		Entry("a script", 400, "invalid_redirect_uri", `{"redirect_uris":["javascript:alert(1)"]}`),
		Entry("metadata that does not fit into an id", 400, "invalid_client_metadata",
			`{"redirect_uris":["https://app.example/`+unrepeated(2000)+`"]}`),
	)

	It("says what is wrong with a name, which could also be absent", Label("C24", "L3"), func(ctx SpecContext) {
		for _, name := range []any{"  ", 5} {
			answer := world.Register(ctx, map[string]any{"redirect_uris": []string{callback}, "client_name": name})
			Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(decode(answer)["error_description"]).To(And(
				HavePrefix("the registration's client_name is not a text, is blank"), Not(ContainSubstring("missing"))))
		}
	})

	It("leads to a connection like that of any other client", Label("L7", "L9"), func(ctx SpecContext) {
		fetches := world.Clients.Fetches()
		client := world.RegisterClient(ctx, loopback)
		tokens := client.Connect(ctx)
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		refreshed := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		Expect(world.Call(ctx, refreshed.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Revoke(ctx, refreshed.Refresh).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Token(ctx, client.Refresh(refreshed.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(world.Clients.Fetches()).To(Equal(fetches))
	})

	It("survives a new server secret and ends when the old one is forgotten",
		Label("L7", "L8", "J2"), func(ctx SpecContext) {
			client := world.RegisterClient(ctx, loopback)
			tokens := client.Connect(ctx)
			world.RotateKeys(ctx)
			tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
			world.RotateKeys(ctx, "--forget-old")
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Token(ctx, client.Exchange("unknown"))).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusUnauthorized))
			page := client.AskFor(ctx, client.Request())
			Expect(page.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(page.Text).To(And(ContainSubstring("This app has to register again"),
				ContainSubstring("Remove this server in your app, add it again")))
			Expect(world.RegisterClient(ctx, loopback).Connect(ctx).Access).NotTo(BeEmpty())
		})

	It("ends while the operator does not allow it", Label("L8"), func(ctx SpecContext) {
		client := world.RegisterClient(ctx, loopback)
		tokens := client.Connect(ctx)
		world.adjust = func(config *service.Config) {}
		world.Restart()
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
		Expect(client.AskFor(ctx, client.Request()).Text).To(ContainSubstring("This app has to register again"))
	})

	It("does not know an id that was changed", Label("L8"), func(ctx SpecContext) {
		client := world.RegisterClient(ctx, loopback)
		tokens, id := client.Connect(ctx), client.ID
		for _, client.ID = range []string{id[:len(id)-5] + "AAAAA", id[:len(id)-1],
			id + strings.Repeat("A", 3000-len(id)),
			strings.Replace(id, "/clients/", "/clients/%2e%2e/clients/", 1), id + "/x", id + "?x=1", id + "#x"} {
			Expect(client.AskFor(ctx, client.Request()).StatusCode).To(Equal(http.StatusBadRequest), client.ID)
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusUnauthorized))
		}
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("lets an app register again that has a client_id of an earlier server",
		Label("L8", "C40"), func(ctx SpecContext, id string) {
			client := world.RegisterClient(ctx, loopback)
			code, tokens := client.Authorize(ctx), client.Connect(ctx)
			own := client.ID
			client.ID = strings.ReplaceAll(id, "ISSUER", world.Issuer)
			page := client.AskFor(ctx, client.Request())
			Expect(page).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
			Expect(page.Text).To(ContainSubstring("Remove this server in your app, add it again"))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Token(ctx, client.Refresh("of the earlier server"))).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Token(ctx, client.Exchange(code))).To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Token(ctx, client.Refresh("x"), basic(client.ID, "secret"))).
				To(BeRefusedAs(401, "invalid_client"))
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusUnauthorized))
			client.ID = own
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("that is a word", "mcp-client"),
		Entry("that is a URL without a path", "https://app.example"),
		Entry("that is a URL of another path of this server", "ISSUER/register/clients/5f0c2f9e"),
		Entry("that this server has sealed below another path", "ISSUER/auth/oauth/clients/AAAAAAAAAAAAAAAA"),
	)

	It("lets an app register again that is registered at another server", Label("L2"), func(ctx SpecContext) {
		client := NewWorld(selfRegistration).RegisterClient(ctx, loopback)
		client.World = world
		page := client.AskFor(ctx, client.Request())
		Expect(page).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
		Expect(page.Text).To(And(ContainSubstring("This app has to register again"),
			ContainSubstring("Remove this server in your app, add it again")))
	})

	It("allows the schemes of known apps, and others that the operator lists",
		Label("L5", "A14"), func(ctx SpecContext) {
			for _, redirect := range []string{"cursor://anysphere.cursor-mcp/oauth/callback",
				"vscode://saoudrizwan.claude-dev/mcp-auth/callback/x", "warp://mcp/oauth2callback"} {
				answer := world.RegisterClient(ctx, redirect).Consent(ctx).Approve(ctx, world.Token)
				Expect(answer.Header.Get("Location")).To(HavePrefix(redirect + "?code="))
			}
			const own = "some-app://callback"
			Expect(decode(world.Register(ctx, map[string]any{"redirect_uris": []string{own}}))["error"]).
				To(Equal("invalid_redirect_uri"))
			world = NewWorld(selfRegistration, func(config *service.Config) {
				config.AllowedPrivateSchemes = []string{"some-app"}
			})
			client := world.RegisterClient(ctx, own)
			Expect(client.Consent(ctx).Approve(ctx, world.Token).Header.Get("Location")).To(HavePrefix(own + "?code="))
		})

	It("needs a word in the list of allowed clients", Label("A8"), func(ctx SpecContext) {
		client := world.RegisterClient(ctx, loopback)
		world.adjust = func(config *service.Config) {
			selfRegistration(config)
			// Of a host; the program refuses such settings.
			config.AllowClient = func(host string) bool { return host == "claude.ai" }
		}
		world.Restart()
		refused := world.Register(ctx, map[string]any{"redirect_uris": []string{callback}})
		Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(decode(refused)["error"]).To(Equal("invalid_client_metadata"))
		Expect(client.AskFor(ctx, client.Request()).StatusCode).To(Equal(http.StatusForbidden))
		world.adjust = func(config *service.Config) {
			selfRegistration(config)
			config.AllowClients = []string{"claude.ai", "self-registered"}
		}
		world.Restart()
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
		Expect(world.RegisterClient(ctx, loopback).Connect(ctx).Access).NotTo(BeEmpty())
		published := world.NewClient()
		Expect(published.AskFor(ctx, published.Request()).StatusCode).To(Equal(http.StatusForbidden))
	})
})

func registeredPage(ctx context.Context) Response {
	GinkgoHelper()
	client := NewWorld(selfRegistration).RegisterClient(ctx, "cursor://anysphere.cursor-mcp/oauth/callback")
	return client.AskFor(ctx, client.Request())
}

var _ = Describe("Naming clients that registered themselves", Label("L9"), func() {
	const loopback, callback, cursor = "http://127.0.0.1:4321/callback", "https://app.example/callback",
		"cursor://anysphere.cursor-mcp/oauth/callback"
	var operated *Operated
	run := func(ctx context.Context, args ...string) string {
		return Run(ctx, append(args, operated.Kept()...)...).Out
	}
	BeforeEach(func() { operated = Operate(selfRegistration) })
	host := func(name string) string { return `<bdi class="host" dir="ltr">` + name + "</bdi>" }

	DescribeTable("names the redirect target on the consent page, and no publisher",
		Label("A35", "A36"), func(ctx SpecContext, redirect, target, advice string) {
			page := operated.RegisterClient(ctx, redirect).Consent(ctx)
			Expect(page.Title).To(Equal("Connect an app to Demo site?"))
			Expect(page.Text).
				To(And(ContainSubstring("The name of this app is unverified."), ContainSubstring("Spec Client"),
					ContainSubstring("<dt>Access goes to</dt><dd>"+target+"</dd>"),
					ContainSubstring(advice)))
			Expect(page.Text).NotTo(Or(ContainSubstring("published at"), ContainSubstring("Two different addresses")))
		},
		Entry("a program on this computer", loopback, host("127.0.0.1:4321"),
			"The app’s access goes to a program on this computer."),
		Entry("an app on this device", cursor, "an app on this device ("+host("cursor:")+")",
			"The app’s access goes to an app on this device."),
		Entry("a host on the web", callback, host("app.example"), "and have just started this connection yourself"),
	)

	It("gives an app no name that it does not have", Label("A35", "L6"), func(ctx SpecContext) {
		client := operated.NewClient()
		client.Redirect = callback
		answer := operated.Register(ctx, map[string]any{"redirect_uris": []string{callback}})
		Expect(answer.Text).NotTo(ContainSubstring("client_name"))
		client.ID = decode(answer)["client_id"].(string)
		Expect(client.Consent(ctx).Text).To(And(ContainSubstring("<h1>Connect an app to <bdi>Demo site</bdi>?</h1>"),
			ContainSubstring("This app has not given a name."), Not(ContainSubstring("The name of this app"))))
		client.Authorize(ctx)
		Expect(operated.Connections(ctx, operated.Token).Text).To(ContainSubstring("An app without a name"))
	})

	It("warns again after a wrong token", func(ctx SpecContext) {
		page := ReadPage(operated.RegisterClient(ctx, callback).Consent(ctx).Approve(ctx, "demo_wrong"))
		Expect(page.Title).To(Equal("Not connected yet: Connect an app to Demo site?"))
		Expect(page.Text).To(ContainSubstring("The name of this app is unverified."))
	})

	It("names no host of its own on the error page", func(ctx SpecContext) {
		client := operated.RegisterClient(ctx, callback)
		client.Redirect = "https://app.example/other"
		page := client.AskFor(ctx, client.Request())
		Expect(page.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(page.Text).NotTo(ContainSubstring("App published at"))
	})

	It("says so in lists, the trace and the log, without the id", func(ctx SpecContext) {
		client := operated.RegisterClient(ctx, loopback)
		operated.Call(ctx, client.Connect(ctx).Access)
		traced := operated.Newest(ctx, "authorize client_metadata page token_judged code_issued exchange call")
		label := "self-registered/" + strings.TrimPrefix(client.ID, operated.Issuer+"/oauth/clients/")[:12] +
			` "Spec Client"`
		Expect(traced.Client).To(Equal(label))
		Expect(run(ctx, "trace")).To(ContainSubstring(label))
		Expect(run(ctx, "connections")).To(ContainSubstring(`self-registered "Spec Client"`))
		Expect(run(ctx, "grants", "list", "--name", "spec client")).To(ContainSubstring("self-registered  Spec Client"))
		Expect(run(ctx, "grants", "list", "--json", "--client", "self-registered")).
			To(ContainSubstring(`"client": "self-registered"`))
		Expect(operated.Connections(ctx, operated.Token).Text).
			To(ContainSubstring("unknown, because it registered itself here"))
		Expect(operated.Log.String()).To(And(ContainSubstring(`"client_registered","client":`+strconv.Quote(label)),
			MatchRegexp(`"grant_created",.*"client":`+regexp.QuoteMeta(strconv.Quote(label))),
			ContainSubstring(`"code_redeemed"`)))
		for _, shown := range []string{operated.Log.String(), run(ctx, "trace", "--json"),
			run(ctx, "grants", "list", "--json"), operated.Connections(ctx, operated.Token).Text} {
			Expect(shown).NotTo(ContainSubstring(client.ID))
		}
	})

	It("names a refused registration in the trace, with the rule and the remedy",
		Label("trace"), func(ctx SpecContext) {
			operated.Discover(ctx)
			operated.Register(ctx, map[string]any{"redirect_uris": []string{"some-app:/callback"}})
			refused := operated.Newest(ctx, "challenge resource_metadata server_metadata registration:refused")
			Expect(refused.State).To(Equal("stopped"))
			Expect(refused.Last().Rule).To(Equal("A14"))
			Expect(refused.Hint).To(ContainSubstring("allowed-private-schemes"))
		})
})
