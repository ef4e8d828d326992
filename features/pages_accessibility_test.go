package features_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/features/chromium"
)

const (
	axeScript    = "accessibility/node_modules/axe-core/axe.min.js"
	callbackPage = "callback"
)

// axe is the report of axe-core for a page, by WCAG 2.2 level AA and axe's best practices.
const axe = `axe.run(document, {
	runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}).then(found => found.violations.map(rule => rule.id + ": " + rule.help + " " +
	rule.nodes.map(node => node.target.join(" ") + " " + node.failureSummary).join("; ")))`

// openDetails lets axe judge what a page folds.
const openDetails = `document.querySelectorAll("details").forEach(folded => { folded.open = true })`

// look is the branding of the site in these specs.
var look = bootstrap.Appearance{
	Name:      "The Gazette",
	Accent:    "#c2410c",
	TokenHelp: "https://gazette.example/account/tokens",
	Logo: []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 136 24"><text x="0" y="19" font-size="20" ` +
		`font-family="serif">The Gazette</text></svg>`),
}

// attempts is a service with one connected client and one that failed to connect.
func attempts(ctx context.Context) *Operated {
	GinkgoHelper()
	service := Operate()
	service.Discover(ctx)
	service.Call(ctx, service.NewClient().Connect(ctx).Access)
	service.Newest(ctx, wholeWay)
	lost := service.NewClient()
	lost.ID += "x"
	lost.AskFor(ctx, lost.Request())
	service.Newest(ctx, "authorize client_metadata:refused")
	return service
}

// unfolded is the page with every box open.
func unfolded(page Response) Response {
	page.Text = strings.ReplaceAll(page.Text, "<details>", "<details open>")
	page.Header.Del("Content-Length")
	return page
}

// Ordered, so that one process renders all pages in one browser.
var _ = Describe("Accessibility of the pages", Ordered, ContinueOnFailure, Label("browser"), func() {
	var world *World
	var client *Client
	var script string
	BeforeEach(func() {
		axe, err := os.ReadFile(axeScript)
		Expect(err).NotTo(HaveOccurred(), "axe-core is installed by: npm ci --prefix features/accessibility")
		script = string(axe)
		world = NewWorld()
		client = world.NewClient()
	})
	consent := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }
	in := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			return visit(ctx, world.Issuer+"/oauth/authorize?"+client.Request().Encode(), language)
		}
	}
	opened := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response { return visit(ctx, world.MCP(), language) }
	}
	copied := func(language, state string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			client.State = state
			return client.Consent(ctx).ApproveElsewhere(ctx, world.Token, with("Accept-Language", language))
		}
	}
	over := func(adjust ...func(*service.Config)) {
		world = NewWorld(adjust...)
		client = world.NewClient()
	}
	choices := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			over(articleScopes, func(config *service.Config) {
				config.GrantChoices = []time.Duration{time.Hour, 24 * time.Hour, 168 * time.Hour, 720 * time.Hour}
			})
			parameters := client.Request()
			parameters.Set("scope", allArticleScopes)
			return visit(ctx, world.Issuer+"/oauth/authorize?"+parameters.Encode(), language)
		}
	}
	// review is the page about tools that have changed.
	review := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			upstream := NewUpstream(apiKey)
			upstream.AddTool("publish_article", "Publish an article on the site.")
			world = NewGateway(upstream.URL+"/mcp", bindingTools)
			client = world.NewClient()
			talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
			talk.Ask(ctx, "tools/list", params{})
			upstream.AddTool("publish_article", "Publish an article on the site and on all social networks.")
			upstream.AddTool("export_"+strings.Repeat("subscriber_", 6)+"list", strings.Repeat("Export all. ", 30))
			upstream.tools.RemoveTools("hang")
			talk.Ask(ctx, "tools/list", params{})
			return client.Consent(ctx).Approve(ctx, world.Token, with("Accept-Language", language))
		}
	}
	// actions is the page of connections with every box open.
	actions := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			over(articleScopes)
			client.Connect(ctx, set("scope", allArticleScopes))
			world.Clock.Advance(3 * time.Hour)
			client.Connect(ctx)
			page := world.Connections(ctx, world.Token, with("Accept-Language", language))
			return unfolded(page.Response)
		}
	}

	inEachLanguage := func(page string, in func(string) func(context.Context) Response) (entries []TableEntry) {
		for _, language := range languages {
			entries = append(entries, Entry(nil, SpecTimeout(browserTime), page+"-"+language, 200, in(language)))
		}
		return entries
	}

	DescribeTable("renders a page that works with a phone, a keyboard and a screen reader:",
		func(ctx SpecContext, name string, status int, state func(context.Context) Response) {
			answer := state(ctx)
			Expect(answer.StatusCode).To(Equal(status))
			Expect(len(answer.Text)).To(BeNumerically("<", 96<<10)) // 25 connections with their forms
			if !strings.HasPrefix(name, callbackPage) {
				Expect(answer.Text).NotTo(ContainSubstring("<script"))
			}
			address, fetches := replayed(answer)
			browser := ReaderBrowser(chromium.DejaVu)
			for _, window := range []struct {
				name          string
				width, height int64
			}{{"phone", 390, 844}, {"desktop", 1280, 900}} {
				for _, scheme := range []string{"light", "dark"} {
					browser.Look(ctx, window.width, window.height, scheme)
					browser.Do(ctx, chromedp.Navigate(address))
					browser.Picture(ctx, fmt.Sprintf("%s-%s-%s.png", name, window.name, scheme))
					Ask(ctx, browser, chromedp.Evaluate[any](openDetails))
					Ask(ctx, browser, chromedp.Evaluate[any](script))
					Expect(Ask(ctx, browser, chromedp.Evaluate[[]string](axe, chromedp.EvalAwaitPromise))).
						To(BeEmpty(), window.name+" "+scheme)
				}
			}
			browser.Look(ctx, 320, 568, "light")
			browser.Do(ctx, chromedp.Navigate(address))
			Expect(Ask(ctx, browser, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))).
				To(BeNumerically("<=", 320), "on the smallest phone")
			Expect(fetches.Load()).To(BeEquivalentTo(5), "each rendering takes one request")
		},
		Entry(nil, SpecTimeout(browserTime), "welcome", 401, opened("en")),
		Entry(nil, SpecTimeout(browserTime), "welcome-japanese", 401, opened("ja")),
		Entry(nil, SpecTimeout(browserTime), "welcome-servers", 200, func(ctx context.Context) Response {
			over(gatewayTo("http://127.0.0.1:1/mcp"), linked, func(config *service.Config) {
				config.Appearance = look
				config.Gateway.Upstreams = append(config.Gateway.Upstreams,
					serverAt("/files", "http://127.0.0.1:1/mcp"))
			})
			return visit(ctx, world.Issuer+"/", "en")
		}),
		inEachLanguage("consent", in),
		Entry(nil, SpecTimeout(browserTime), "consent-warnings", 200, func(ctx context.Context) Response {
			client.Redirect = "https://client.example/callback"
			return consent(ctx)
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-branded", 200, func(ctx context.Context) Response {
			over(func(config *service.Config) { config.Appearance = look }, linked)
			return consent(ctx)
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-unchecked", 200, uncheckedPage),
		Entry(nil, SpecTimeout(browserTime), "consent-registered", 200, registeredPage),
		inEachLanguage("consent-choices", choices),
		inEachLanguage("connections-actions", actions),
		inEachLanguage("tools-changed", review),
		Entry(nil, SpecTimeout(browserTime), "consent-wrong-token", 403, func(ctx context.Context) Response {
			return client.Consent(ctx).Approve(ctx, "demo_wrong")
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-too-many", 429, func(ctx context.Context) Response {
			over(behind("127.0.0.1/32"))
			world.Clock.Stop()
			return refusedTurn(ctx, client.Consent(ctx).guesses(office))
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-site-silent", 503, func(ctx context.Context) Response {
			site := NewTokenSite("{}")
			site.Answer(http.StatusInternalServerError, "{}")
			over(func(config *service.Config) {
				config.Verification = overHTTP.configure(site.site.URL("/token"))
			})
			return client.Consent(ctx).Approve(ctx, world.Token)
		}),
		inEachLanguage(callbackPage, func(language string) func(context.Context) Response {
			return copied(language, "s+t/a=")
		}),
		Entry(nil, SpecTimeout(browserTime), "callback-longest", 200, copied("en", strings.Repeat("&", 4096))),
		Entry(nil, SpecTimeout(browserTime), "problem-app-not-allowed", 403, func(ctx context.Context) Response {
			over(func(config *service.Config) { config.AllowClients = []string{"claude.ai"} })
			return consent(ctx)
		}),
		Entry(nil, SpecTimeout(browserTime), "problem-outage", 503, func(ctx context.Context) Response {
			DeferCleanup(world.Hide("oauth.db.secret"))
			return consent(ctx)
		}),
		Entry(nil, SpecTimeout(browserTime), "problem-return", 400, func(ctx context.Context) Response {
			client.Redirect = "https://client.example/callback"
			parameters := client.Request()
			parameters.Set("response_type", "token")
			return client.AskFor(ctx, parameters)
		}),
		Entry(nil, SpecTimeout(browserTime), "problem-old-form", 400, func(ctx context.Context) Response {
			page := client.Consent(ctx)
			world.Clock.Advance(10 * time.Minute)
			return page.Deny(ctx)
		}),
		Entry(nil, SpecTimeout(browserTime), "connections", 200, func(ctx context.Context) Response {
			return Get(ctx, world.Issuer+"/oauth/connections")
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-wrong-token", 200, func(ctx context.Context) Response {
			return world.Connections(ctx, "demo_wrong").Response
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-list", 200, func(ctx context.Context) Response {
			world.Call(ctx, client.Connect(ctx).Access)
			client.Redirect = "https://client.example/callback"
			client.Authorize(ctx)
			return world.Connections(ctx, world.Token).Response
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-renewed", 200, func(ctx context.Context) Response {
			client.Connect(ctx)
			renewed := world.TokenFor(ctx, "editor", demosite.Editor)
			return world.Connections(ctx, world.Token).Replace(ctx, renewed).Response
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-not-renewed", 403, func(ctx context.Context) Response {
			client.Connect(ctx)
			return world.Connections(ctx, world.Token).Replace(ctx, "demo_wrong").Response
		}),
		Entry(nil, SpecTimeout(3*browserTime), "connections-paged", 200, func(ctx context.Context) Response {
			for range 91 {
				client.Authorize(ctx)
			}
			return world.Connections(ctx, world.Token).GoTo(ctx, "2").Response
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-ended", 200, func(ctx context.Context) Response {
			client.Connect(ctx)
			return world.Connections(ctx, world.Token).End(ctx, "").Response
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-fields", 200, func(ctx context.Context) Response {
			over(gatewayTo("http://127.0.0.1:1/mcp"),
				askingFor(addressUserAndKey, "X-Site: {url}", "Authorization: Basic {base64(user:token)}"))
			return in("de")(ctx)
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-fields-wrong", 403, func(ctx context.Context) Response {
			over(gatewayTo(NewUpstream(apiKey).URL+"/mcp"),
				askingFor(addressUserAndKey, "X-Site: {url}", "Authorization: Basic {base64(user:token)}"))
			return client.Consent(ctx).enter(ctx, "url", "https://a.example", "user", "ann", "token", "wrong")
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-too-many", 429, func(ctx context.Context) Response {
			over(behind("127.0.0.1/32"))
			world.Clock.Stop()
			return refusedTurn(ctx, world.guessesOfConnections(office))
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-old-page", 400, func(ctx context.Context) Response {
			client.Connect(ctx)
			page := world.Connections(ctx, world.Token)
			world.Clock.Advance(10 * time.Minute)
			return page.End(ctx, "").Response
		}),
		Entry(nil, SpecTimeout(browserTime), "connections-japanese", 200, func(ctx context.Context) Response {
			client.Connect(ctx)
			return world.Connections(ctx, world.Token, with("Accept-Language", "ja")).Response
		}),
		Entry(nil, SpecTimeout(browserTime), "consent-upstream-down", 200, func(ctx context.Context) Response {
			over(gatewayTo("http://127.0.0.1:1/mcp"))
			world.service.CheckUpstreams(ctx)
			return client.Consent(ctx).Response
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-upstream-down", 200, func(ctx context.Context) Response {
			service, _ := operateChecked(ctx, "http://127.0.0.1:1/mcp")
			return service.AskAdmin(ctx, "/")
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-empty", 200, func(ctx context.Context) Response {
			return Operate().AskAdmin(ctx, "/")
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-connections", 200, func(ctx context.Context) Response {
			return attempts(ctx).AskAdmin(ctx, "/")
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-calls", 200, func(ctx context.Context) Response {
			service := attempts(ctx)
			for i := range 12 {
				service.Clock.Advance(90 * time.Minute)
				access := service.NewClient().Connect(ctx).Access
				for range 3 + i%5 {
					service.Call(ctx, access)
				}
				if i%3 == 0 {
					service.Call(ctx, "wrong")
				}
			}
			return service.AskAdmin(ctx, "/")
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-grants", 200, func(ctx context.Context) Response {
			service := attempts(ctx)
			client := service.ClientWith("client_name", strings.Repeat("Spec", 30))
			client.Authorize(ctx)
			return unfolded(service.AskAdmin(ctx, "/grants?ended=1"))
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-grants-empty", 200, func(ctx context.Context) Response {
			return Operate().AskAdmin(ctx, "/grants")
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-grants-problem", 400, func(ctx context.Context) Response {
			return unfolded(attempts(ctx).endOnPage(ctx, ending("token", "token", "")))
		}),
		Entry(nil, SpecTimeout(browserTime), "operator-connection", 200, func(ctx context.Context) Response {
			service := attempts(ctx)
			return service.AskAdmin(ctx, "/connections/"+service.Traces(ctx)[0].ID)
		}),
	)
})
