package features_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Amend submits the fields of the only connection on the page; change may alter them.
func (p Page) Amend(ctx context.Context, change ...func(url.Values)) Page {
	GinkgoHelper()
	form := url.Values{"decision": {"amend"}}
	for name, values := range p.Hidden {
		form[name] = values
	}
	for _, apply := range change {
		apply(form)
	}
	return ReadPage(Post(ctx, p.Action, form))
}

var _ = Describe("Naming and narrowing one's connections", func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(articleScopes)
		client = world.NewClient()
	})
	all := set("scope", allArticleScopes)
	without := func(scope string) func(url.Values) {
		return func(form url.Values) {
			form["allow"] = strings.Fields(strings.Replace(strings.Join(form["allow"], " "), scope, "", 1))
		}
	}
	// publish needs every scope of this world.
	publish := func(ctx context.Context, at *World, access string) int {
		GinkgoHelper()
		return at.Converse(ctx, stateless, access).Post(ctx, "tools/call",
			params{"name": "list_articles", "arguments": params{}}).StatusCode
	}

	It("tells which app reaches which server with which account, and when, in the reader's words",
		Label("J21"), func(ctx SpecContext) {
			tokens := client.Connect(ctx, all)
			world.Call(ctx, tokens.Access)
			world.Clock.Advance(3*time.Hour + time.Minute)
			page := world.Connections(ctx, world.Token).Text
			Expect(page).To(MatchRegexp(`<h2 id="app-0"><span class="claim"><q><bdi>Spec Client</bdi></q> ` +
				`<small>\(unverified\)</small></span>\s*→\s*<bdi>[^<]+</bdi></h2>`))
			Expect(page).To(And(ContainSubstring("<dt>Account</dt><dd><bdi>editor</bdi></dd>"),
				ContainSubstring("<dt>Server</dt>"), ContainSubstring(world.MCP())))
			Expect(page).To(MatchRegexp(`<dt>Connected</dt><dd>` +
				`<time datetime="[^"]+Z" title="[^"]+ UTC">3 hours ago</time>`))
			Expect(page).To(MatchRegexp(`<dt>Ends at the latest</dt><dd><time [^>]+>in 180 days</time>`))
			german := world.Connections(ctx, world.Token, with("Accept-Language", "de")).Text
			Expect(german).To(And(ContainSubstring(">vor 3 Stunden</time>"), ContainSubstring(">in 180 Tagen</time>")))
		})

	It("shows the name that the verifier has for the account, and no subject made of the token",
		Label("J21", "H3"), func(ctx SpecContext) {
			for answer, account := range map[string]string{
				`{"subject":"u-17","name":"Ada <L>"}`: "<dt>Account</dt><dd><bdi>Ada &lt;L&gt;</bdi></dd>",
				`{"subject":"u-17"}`:                  "<dt>Account</dt><dd><bdi>u-17</bdi></dd>",
				`{}`:                                  "",
			} {
				site := NewTokenSite(answer)
				world = NewWorld(func(config *service.Config) {
					config.Verification = overHTTP.configure(site.site.URL("/token"))
				})
				world.NewClient().Connect(ctx)
				page := world.Connections(ctx, world.Token).Text
				Expect(page).To(ContainSubstring(account))
				Expect(strings.Contains(page, "<dt>Account</dt>")).To(Equal(account != ""))
			}
		})

	It("gives a connection the name that the person chooses, and takes it away", Label("J21"), func(ctx SpecContext) {
		client.Connect(ctx, all)
		page := world.Connections(ctx, world.Token)
		named := page.Amend(ctx, set("label", "  my <b>laptop</b> "))
		Expect(named.Text).To(And(ContainSubstring("The change is saved."),
			MatchRegexp(`<bdi>my &lt;b&gt;laptop&lt;/b&gt;</bdi>\s*→`)))
		Expect(world.Grants(ctx)).To(ConsistOf(HaveField("Label", "my <b>laptop</b>")))
		Expect(named.Amend(ctx, set("label", "")).Text).NotTo(ContainSubstring("laptop"))
	})

	DescribeTable("refuses a name that cannot be shown, and changes nothing", Label("J21"),
		func(ctx SpecContext, label string) {
			client.Connect(ctx, all)
			page := world.Connections(ctx, world.Token).Amend(ctx, set("label", label), without("delete"))
			Expect(page.Response).To(BeAPage(http.StatusBadRequest, "invalid_request"))
			Expect(world.Grants(ctx)).To(ConsistOf(And(HaveField("Label", ""), HaveField("Scopes", HaveLen(5)))))
		},
		Entry("of more than 60 characters", strings.Repeat("é", 61)), Entry("with an invisible one", "a\u200bb"),
		Entry("with a control character", "a\x00b"), Entry("that is no UTF-8", "a\xff"),
	)

	It("takes scopes away from the tokens that the app has and gets, and gives none back",
		Label("J22"), func(ctx SpecContext) {
			tokens := client.Connect(ctx, all)
			Expect(publish(ctx, world, tokens.Access)).To(Equal(http.StatusOK))
			page := world.Connections(ctx, world.Token)
			narrowed := page.Amend(ctx, without("delete"))
			Expect(narrowed.Text).To(ContainSubstring("The change is saved."))
			Expect(publish(ctx, world, tokens.Access)).To(Equal(http.StatusForbidden))
			renewed := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(renewed.Scope).To(Equal("change comment offline_access read"))
			page.Amend(ctx) // the page still has the checkbox checked
			Expect(publish(ctx, world, renewed.Access)).To(Equal(http.StatusForbidden))
			Expect(world.Log.String()).To(ContainSubstring("grant_amended"))
		})

	It("lets an app go on that repeats at its refresh what it once requested", Label("J22", "D24"),
		func(ctx SpecContext) {
			tokens := client.Connect(ctx, all)
			world.Connections(ctx, world.Token).Amend(ctx, without("delete"))
			form := client.Refresh(tokens.Refresh)
			form.Set("scope", allArticleScopes)
			renewed := client.Token(ctx, form).Tokens()
			Expect(renewed.Scope).To(Equal("change comment offline_access read"))
			Expect(publish(ctx, world, renewed.Access)).To(Equal(http.StatusForbidden))
			form = client.Refresh(renewed.Refresh)
			form.Set("scope", "delete offline_access")
			Expect(client.Token(ctx, form)).To(BeRefusedAs(400, "invalid_scope"))
		})

	It("keeps what a scope that stays implies, and refuses to leave nothing", Label("J22"), func(ctx SpecContext) {
		tokens := client.Connect(ctx, all)
		page := world.Connections(ctx, world.Token)
		page.Amend(ctx, without("comment"))
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens().Scope).To(Equal(tokens.Scope))
		nothing := page.Amend(ctx, drop("allow"), set("label", "laptop"))
		Expect(nothing.Text).To(And(ContainSubstring("End the connection instead."), Not(ContainSubstring(">laptop"))))
		Expect(publish(ctx, world, tokens.Access)).To(Equal(http.StatusOK))
	})

	It("brings the end forward for tokens that the app has, and never back", Label("J22"), func(ctx SpecContext) {
		tokens := client.Connect(ctx, all)
		world.Clock.Advance(30 * time.Minute)
		tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		page := world.Connections(ctx, world.Token)
		page.Amend(ctx, set("lifetime", "10m"))
		page.Amend(ctx, set("lifetime", "720h"))
		world.Clock.Advance(10*time.Minute - time.Second)
		Expect(publish(ctx, world, tokens.Access)).To(Equal(http.StatusOK))
		world.Clock.Advance(time.Second)
		Expect(publish(ctx, world, tokens.Access)).To(Equal(http.StatusUnauthorized))
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
	})

	It("narrows a code that waits for its app", Label("J22"), func(ctx SpecContext) {
		code := client.Authorize(ctx, all)
		world.Connections(ctx, world.Token).Amend(ctx, without("delete"), set("label", "laptop"))
		Expect(client.Token(ctx, client.Exchange(code)).Tokens().Scope).To(Equal("change comment offline_access read"))
		Expect(world.Grants(ctx)).To(ConsistOf(HaveField("Label", "laptop")))
	})

	It("changes no connection of another person", Label("J22"), func(ctx SpecContext) {
		client.Connect(ctx, all)
		others := world.TokenFor(ctx, "ada", demosite.Author)
		client.ConnectAs(ctx, others)
		grant := world.Connections(ctx, others).grants()[0]
		world.Connections(ctx, world.Token).Amend(ctx, set("grant", grant), set("label", "mine"))
		Expect(world.Grants(ctx)).To(HaveEach(HaveField("Label", "")))
	})

	It("lets the operator do the same by a command, and a host by the library", Label("J22"), func(ctx SpecContext) {
		tokens := client.Connect(ctx, all)
		amend := func(args ...string) Ran {
			return Run(ctx, append(append([]string{"grants", "amend"}, world.Kept()...), args...)...)
		}
		id := world.Grants(ctx)[0].ID
		done := amend(id[12:20], "--label", "ci runner", "--scopes", "read,comment,admin", "--ends-in", "1h")
		Expect(done.Code).To(BeZero(), done.Err)
		Expect(done.Out).To(And(ContainSubstring("ci runner"), ContainSubstring("comment offline_access read ")))
		Expect(publish(ctx, world, tokens.Access)).To(Equal(http.StatusForbidden))
		for _, wrong := range [][]string{{id}, {"--label", "x"}, {id, "--scopes", "admin"}, {id, "--ends-in", "-1h"},
			{"no-such-id", "--label", "x"}} {
			Expect(amend(wrong...).Code).NotTo(BeZero(), strings.Join(wrong, " "))
		}
		label := "library"
		Expect(world.service.Authz.AmendGrants(ctx, func(c oauth.Connection) bool { return c.ID == id },
			oauth.Amendment{Label: &label})).To(Equal(1))
		Expect(world.Grants(ctx)).To(ConsistOf(And(HaveField("Label", "library"),
			HaveField("Scopes", Equal([]string{"comment", "offline_access", "read"})))))
	})

	It("is obeyed by every replica from the answer on, with 64 calls in flight, as is the end",
		Label("J22", "I17", "I22"), func(ctx SpecContext) {
			tokens := client.Connect(ctx, all)
			replicas := []*World{world, {Issuer: world.Replica().Address}}
			racing := func(early, late int, change func()) {
				GinkgoHelper()
				raceCalls(change, func(caller int, isLate bool) {
					status := publish(ctx, replicas[caller%2], tokens.Access)
					if isLate {
						Expect(status).To(Equal(late))
					}
					Expect(status).To(Or(Equal(early), Equal(late)))
				})
			}
			page := world.Connections(ctx, world.Token)
			racing(http.StatusOK, http.StatusForbidden, func() {
				Expect(page.Amend(ctx, without("delete")).Text).To(ContainSubstring("The change is saved."))
			})
			racing(http.StatusForbidden, http.StatusUnauthorized, func() { page.End(ctx, page.grants()[0]) })
		})

	It("asks once before it ends a connection, and shows a way back", Label("J21"), func(ctx SpecContext) {
		client.Connect(ctx, all)
		page := world.Connections(ctx, world.Token)
		Expect(page.Text).
			To(MatchRegexp(`(?s)<summary>End this connection</summary>.*value="end".*value="page">Change nothing`))
		form := url.Values{
			"decision": {"page"},
			"ticket":   {page.Hidden.Get("ticket")},
			"grant":    {page.grants()[0]},
			"page":     {"1"},
		}
		back := ReadPage(Post(ctx, page.Action, form))
		Expect(back.grants()).To(Equal(page.grants()))
		Expect(regexp.MustCompile(`<details open`).MatchString(back.Text)).To(BeFalse())
	})
})
