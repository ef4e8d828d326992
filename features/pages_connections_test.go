package features_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// grantField is the hidden field behind the button that ends one connection.
var grantField = regexp.MustCompile(`name="grant" value="([^"]+)"`)

func (w *World) Connections(ctx context.Context, token string, change ...func(*http.Request)) Page {
	GinkgoHelper()
	form := url.Values{"decision": {"show"}, "bearer_token": {token}}
	return ReadPage(Post(ctx, ReadPage(Get(ctx, w.Issuer+"/oauth/connections")).Action, form, change...))
}

// End presses the button of the grant; "" means the button for all.
func (p Page) End(ctx context.Context, grant string) Page {
	GinkgoHelper()
	form := url.Values{"decision": {"end_all"}, "ticket": {p.Hidden.Get("ticket")}}
	if grant != "" {
		form = url.Values{"decision": {"end"}, "ticket": {p.Hidden.Get("ticket")}, "grant": {grant}}
	}
	return ReadPage(Post(ctx, p.Action, form))
}

func (p Page) grants() (ids []string) {
	for _, found := range grantField.FindAllStringSubmatch(p.Text, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

var _ = Describe("Seeing and ending one's connections", Label("stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})

	It("shows every active connection of the token, and no secrets", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		code := client.Authorize(ctx)
		client.Revoke(ctx, client.Connect(ctx).Refresh)
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		page := world.Connections(ctx, " Bearer "+world.Token+"\n")
		Expect(page.StatusCode).To(Equal(http.StatusOK))
		Expect(page.grants()).To(HaveLen(2))
		Expect(page.Text).To(And(ContainSubstring("Spec Client"), ContainSubstring("A program on a computer"),
			ContainSubstring("Use this site&#39;s tools in your name"), ContainSubstring("waits for the app")))
		Expect(page.Text).
			NotTo(Or(ContainSubstring(world.Token), ContainSubstring(tokens.Access), ContainSubstring(tokens.Refresh),
				ContainSubstring(code)))
		Expect(page.Header).NotTo(HaveKey("Set-Cookie"))
		Expect(page.Header.Get("Cache-Control")).To(Equal("no-store"))
	})

	It("tells which app reaches which server with which account, and when, in the reader's words",
		Label("J21"), func(ctx SpecContext) {
			tokens := client.Connect(ctx)
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

	It("shows a latest end that no refresh moves, beside the end of an unused connection, which one does",
		Label("J18"), func(ctx SpecContext) {
			connected := world.Clock.Now()
			tokens := client.Connect(ctx)
			world.Clock.Advance(24 * time.Hour)
			client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			page := world.Connections(ctx, world.Token).Text
			for label, days := range map[string]int{"Ends if unused": 31, "Ends at the latest": 180} {
				shown := regexp.MustCompile(label + `</dt><dd><time datetime="([^"]+)"`).FindStringSubmatch(page)
				Expect(shown).NotTo(BeNil(), label)
				Expect(time.Parse(time.RFC3339, shown[1])).
					To(BeTemporally("~", connected.AddDate(0, 0, days), time.Minute), label)
			}
		})

	It("ends one connection immediately and permanently, and no others", Label("I12"), func(ctx SpecContext) {
		ended := client.Connect(ctx)
		world.Clock.Advance(time.Second)
		kept := client.Connect(ctx)
		page := world.Connections(ctx, world.Token)
		left := page.End(ctx, page.grants()[1])
		Expect(left.Text).To(ContainSubstring("The connection has ended."))
		Expect(left.grants()).To(Equal(page.grants()[:1]))
		Expect(world.Call(ctx, ended.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(client.Token(ctx, client.Refresh(ended.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Log.String()).To(ContainSubstring("ended_by_person"))
	})

	It("asks once before it ends a connection, and shows a way back", Label("J21"), func(ctx SpecContext) {
		client.Connect(ctx)
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

	It("ends a connection from the answer on, and soon in another process, with 64 calls in flight",
		Label("I17", "I22"), func(ctx SpecContext) {
			access := client.Connect(ctx).Access
			replicas := []*World{world, {Issuer: world.Replica().Address}}
			page := world.Connections(ctx, world.Token)
			raceCalls(func() { page.End(ctx, page.grants()[0]) }, func(caller int, isLate bool) {
				status := replicas[caller%2].Call(ctx, access).StatusCode
				if isLate && caller%2 == 0 {
					Expect(status).To(Equal(http.StatusUnauthorized))
				}
				Expect(status).To(Or(Equal(http.StatusOK), Equal(http.StatusUnauthorized)))
			})
			Eventually(func() int { return replicas[1].Call(ctx, access).StatusCode }).WithContext(ctx).
				WithTimeout(patience).Should(Equal(http.StatusUnauthorized))
		})

	It("ends all connections", func(ctx SpecContext) {
		tokens, code := client.Connect(ctx), client.Authorize(ctx)
		left := world.Connections(ctx, world.Token).End(ctx, "")
		Expect(left.Text).To(And(ContainSubstring("2 connections have ended."),
			ContainSubstring("No app is connected with this token now.")))
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(client.Token(ctx, client.Exchange(code))).To(BeRefusedAs(400, "invalid_grant"))
	})

	It("confirms nothing when another page has ended the connection before", Label("J21"), func(ctx SpecContext) {
		client.Connect(ctx)
		page := world.Connections(ctx, world.Token)
		world.Clock.Advance(time.Second)
		kept := client.Connect(ctx)
		page.End(ctx, page.grants()[0])
		again := page.End(ctx, page.grants()[0])
		Expect(again.Response).To(BeAPage(http.StatusBadRequest, "This page is out of date."))
		Expect(again.Text).NotTo(ContainSubstring("has ended"))
		Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(page.End(ctx, "").Text).To(ContainSubstring("The connection has ended."), "the other one")
	})

	It("closes the streams of ended connections, and no others", Label("G16", "E9"), func(ctx SpecContext) {
		talk := world.Converse(ctx, sessions, client.Connect(ctx).Access)
		other := world.Converse(ctx, sessions,
			client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author)).Access)
		ended, left := talk.Listen(ctx), other.Listen(ctx)
		world.Connections(ctx, world.Token).End(ctx, "")
		Eventually(ended.Events).WithTimeout(patience).Should(BeClosed())
		Expect(left.Events).NotTo(BeClosed())
	})

	DescribeTable("answers like a token without connections", Label("B7"), func(ctx SpecContext, pasted string) {
		wrong, none := world.Connections(ctx, pasted),
			world.Connections(ctx, world.TokenFor(ctx, "ada", demosite.Author))
		Expect(wrong.StatusCode).To(Equal(none.StatusCode))
		nonce := regexp.MustCompile(`nonce="[^"]+"`)
		Expect(nonce.ReplaceAllString(wrong.Text, "")).To(Equal(nonce.ReplaceAllString(none.Text, "")))
		Expect(wrong.Text).To(ContainSubstring("No app is connected with this token, or this site does not know it."))
	},
		Entry("a wrong token", "demo_wrong"),
	)

	DescribeTable("explains why a text cannot be a token", Label("B7"), func(ctx SpecContext, pasted, sentence string) {
		Expect(world.Connections(ctx, pasted)).To(HaveField("Response", BeAPage(http.StatusForbidden, sentence)))
	},
		Entry("with control characters", "demo\x00wrong", "It contains a line break or another control character."),
		Entry("that is too long", strings.Repeat("x", 4097), "This is too long for a token."),
	)

	It("works for a token that the site has revoked", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		Expect(world.Site().RevokeToken(world.Token)).To(Succeed())
		world.Connections(ctx, world.Token).End(ctx, "")
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
	})

	DescribeTable("refuses, and changes nothing",
		func(ctx SpecContext, spoil func(url.Values, *http.Request), status int) {
			tokens := client.Connect(ctx)
			page := world.Connections(ctx, world.Token)
			form := url.Values{"decision": {"end"}, "ticket": {page.Hidden.Get("ticket")}, "grant": {page.grants()[0]}}
			spoil(form, &http.Request{Header: http.Header{}})
			answer := Post(ctx, page.Action, form, func(r *http.Request) { spoil(url.Values{}, r) })
			Expect(answer.StatusCode).To(Equal(status))
			Expect(answer.Header).NotTo(HaveKey("Location"))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("a form of another site", Label("B3"), func(_ url.Values, r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, 403),
		Entry("a forged ticket", func(v url.Values, _ *http.Request) { v.Set("ticket", "AAAA") }, 400),
		Entry("a ticket of a consent page", func(v url.Values, _ *http.Request) {
			v.Set("ticket", client.Consent(context.Background()).Hidden.Get("ticket"))
		}, 400),
		Entry("a repeated grant", func(v url.Values, _ *http.Request) { v.Add("grant", "x") }, 400),
		Entry("a grant of another person", func(v url.Values, _ *http.Request) {
			v.Set("grant", "0123456789abcdef0123456789abcdef")
		}, 400),
		Entry("another media type", func(_ url.Values, r *http.Request) {
			r.Header.Set("Content-Type", "text/plain")
		}, 415),
	)

	It("names no app when a form is refused", func(ctx SpecContext) {
		client.Connect(ctx)
		page := world.Connections(ctx, world.Token)
		crossSite := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
		for _, refused := range []Response{
			Post(ctx, page.Action, url.Values{"decision": {"end_all"}, "ticket": {"AAAA"}}),
			Post(ctx, page.Action, url.Values{"decision": {"show"}, "bearer_token": {world.Token}}, crossSite),
			Post(ctx, page.Action, url.Values{}),
		} {
			Expect(refused.Text).To(And(ContainSubstring("Open the page of your connections on this site again"),
				ContainSubstring("Nothing has ended."),
				Not(MatchRegexp(`in (your|the) app|app’s`))))
		}
	})

	It("asks for the token again when the server secret was replaced meanwhile, because some connections would not end",
		Label("J2"), func(ctx SpecContext) {
			client.Connect(ctx)
			page := world.Connections(ctx, world.Token)
			world.RotateKeys(ctx)
			later := client.Connect(ctx)
			stale := page.End(ctx, "")
			Expect(stale.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(stale.Text).To(And(ContainSubstring("This page is out of date."),
				Not(ContainSubstring("have ended."))))
			world.Connections(ctx, world.Token).End(ctx, "")
			Expect(world.Call(ctx, later.Access)).To(BeChallenged(world, "invalid_token"))
		})

	It("works with any number of retired secrets", Label("B1", "J2"), func(ctx SpecContext) {
		oldest := client.Connect(ctx)
		file := filepath.Join(world.Dir, "oauth.db.secret")
		var lines []string
		for n := range 500 {
			lines = append(lines,
				"2026-01-01T00:00:00Z "+base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%032d", n)))
		}
		lines = append(lines, "2025-01-01T00:00:00Z "+base64.StdEncoding.EncodeToString([]byte(serverSecret(world))))
		Expect(os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)).To(Succeed())
		newest := client.Connect(ctx)
		page := world.Connections(ctx, world.Token)
		Expect(page.grants()).To(HaveLen(2))
		Expect(page.End(ctx, page.grants()[1]).grants()).To(Equal(page.grants()[:1]))
		Expect(world.Call(ctx, oldest.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(page.End(ctx, "").Text).To(ContainSubstring("The connection has ended."))
		Expect(world.Call(ctx, newest.Access)).To(BeChallenged(world, "invalid_token"))
	})
})
