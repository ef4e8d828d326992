package features_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// endOnPage sends a form of the operator's page as a browser does.
func (o *Operated) endOnPage(ctx context.Context, form url.Values, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return Post(ctx, o.Admin+"/grants", form, append([]func(*http.Request){with("Origin", o.Admin)}, change...)...)
}

// cards returns how many grants are on the operator's page.
func cards(page Response) int { return strings.Count(page.Text, "<article") }

// ending is a form that ends a kind of grants.
func ending(kind, field, value string) url.Values { return url.Values{"end": {kind}, field: {value}} }

var _ = Describe("The operator's page of grants", Label("operations"), func() {
	var operated *Operated
	var client *Client
	BeforeEach(func() {
		operated = Operate()
		client = operated.NewClient()
	})
	list := func(ctx context.Context, query ...string) Response {
		GinkgoHelper()
		values := url.Values{}
		for i := 0; i < len(query); i += 2 {
			values.Set(query[i], query[i+1])
		}
		page := operated.AskAdmin(ctx, "/grants?"+values.Encode())
		Expect(page.StatusCode).To(Equal(http.StatusOK), page.Text)
		return page
	}

	It("lists what people have granted, and no secret", Label("O1"), func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		page := list(ctx)
		Expect(cards(page)).To(Equal(1))
		Expect(page.Text).To(And(ContainSubstring("<bdi>editor</bdi>"), ContainSubstring("<bdi>Spec Client</bdi>"),
			ContainSubstring(client.ID), ContainSubstring(operated.MCP()), ContainSubstring("mcp offline_access"),
			ContainSubstring(operated.Grants(ctx)[0].ID)))
		for _, secret := range []string{tokens.Access, tokens.Refresh, operated.Token} {
			Expect(page.Text).NotTo(ContainSubstring(secret))
		}
	})

	DescribeTable("finds grants", Label("O1"), func(ctx SpecContext, found int, query func() []string) {
		client.Connect(ctx)
		client.ConnectAs(ctx, operated.TokenFor(ctx, "ada", demosite.Author))
		page := list(ctx, query()...)
		Expect(cards(page)).To(Equal(found))
		if found == 0 {
			Expect(page.Text).To(ContainSubstring("No grant matches."))
		}
	},
		Entry("by the host of the app", 2, func() []string {
			return []string{"app", strings.ToUpper(hostOf(client.ID))}
		}),
		Entry("by the name of the app", 2, func() []string { return []string{"app", " spec "} }),
		Entry("by person", 1, func() []string { return []string{"person", "ada"} }),
		Entry("by server", 2, func() []string { return []string{"server", operated.MCP()} }),
		Entry("by app and person", 1, func() []string { return []string{"app", "spec", "person", "ADA"} }),
	)

	It("shows a page of the list, and says when there are more", Label("O1"), func(ctx SpecContext) {
		for range 27 {
			client.Authorize(ctx)
		}
		first := list(ctx, "app", "spec")
		Expect(cards(first)).To(Equal(25))
		Expect(first.Text).To(ContainSubstring("There are more"))
		next := regexp.MustCompile(`href="(/grants\?after=[^"]*)"`).FindStringSubmatch(first.Text)
		Expect(next).NotTo(BeNil(), first.Text)
		second := operated.AskAdmin(ctx, strings.ReplaceAll(next[1], "&amp;", "&"))
		Expect(cards(second)).To(Equal(2))
		Expect(second.Text).To(And(ContainSubstring("(waits for the app)"), Not(ContainSubstring("There are more"))))
		Expect(first.Text).NotTo(ContainSubstring(operated.Grants(ctx)[26].ID))
	})

	It("ends one grant at once, and no other", Label("O2"), func(ctx SpecContext) {
		ended, kept := client.Connect(ctx), client.Connect(ctx)
		done := operated.endOnPage(ctx, ending("grant", "grant", operated.Grants(ctx)[0].ID))
		Expect(done.StatusCode).To(Equal(http.StatusSeeOther), done.Text)
		Expect(operated.Call(ctx, ended.Access)).To(BeChallenged(operated.World, "invalid_token"))
		Expect(client.Token(ctx, client.Refresh(ended.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(operated.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		page := operated.AskAdmin(ctx, done.Header.Get("Location"))
		Expect(page.Text).To(ContainSubstring("Ended: 1."))
		Expect(cards(page)).To(Equal(1))
		Expect(linesWith(operated.Log.String(), `"grant_ended"`)).
			To(ConsistOf(ContainSubstring(`"reason":"ended_by_operator"`)))
	})

	It("ends the grant of an app that has not redeemed its code", Label("O2"), func(ctx SpecContext) {
		code := client.Authorize(ctx)
		waiting := ending("grant", "grant", operated.Grants(ctx)[0].ID)
		Expect(operated.endOnPage(ctx, waiting).Header.Get("Location")).To(Equal("/grants?ended=1"))
		Expect(client.Token(ctx, client.Exchange(code))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(operated.endOnPage(ctx, waiting).Header.Get("Location")).To(Equal("/grants?ended=0"))
		unknown := operated.endOnPage(ctx, ending("grant", "grant", "unknown"))
		Expect(unknown.Header.Get("Location")).To(Equal("/grants?ended=0"))
	})

	It("ends all grants of an app, of every person, and of no other app", Label("O2"), func(ctx SpecContext) {
		ended := client.Connect(ctx)
		client.ConnectAs(ctx, operated.TokenFor(ctx, "ada", demosite.Author))
		other := operated.NewClient()
		kept := other.Connect(ctx)
		done := operated.endOnPage(ctx, ending("client", "client", client.ID))
		Expect(done.Header.Get("Location")).To(Equal("/grants?ended=2"))
		Expect(operated.Call(ctx, ended.Access)).To(BeChallenged(operated.World, "invalid_token"))
		Expect(operated.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("ends all grants of a pasted token, which it neither shows nor logs", Label("O2"), func(ctx SpecContext) {
		ended := client.Connect(ctx)
		client.Authorize(ctx)
		kept := client.ConnectAs(ctx, operated.TokenFor(ctx, "ada", demosite.Author))
		done := operated.endOnPage(ctx, ending("token", "token", "\u200b`"+operated.Token+"`\n"))
		Expect(done.Header.Get("Location")).To(Equal("/grants?ended=2"), done.Text)
		Expect(operated.Call(ctx, ended.Access)).To(BeChallenged(operated.World, "invalid_token"))
		Expect(operated.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(operated.Log.String() + list(ctx).Text).NotTo(ContainSubstring(operated.Token))
		again := operated.endOnPage(ctx, ending("token", "token", operated.Token))
		Expect(again.Header.Get("Location")).To(Equal("/grants?ended=0"))
		Expect(list(ctx, "ended", "0").Text).To(ContainSubstring("Nothing has ended"))
	})

	DescribeTable("explains a form that ends nothing", Label("O2"), func(ctx SpecContext, form url.Values, why string) {
		kept := client.Connect(ctx)
		refused := operated.endOnPage(ctx, form)
		Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(refused.Text).To(ContainSubstring(`<p class="problem" role="alert">Nothing has ended: ` + why))
		Expect(refused.Text).NotTo(ContainSubstring("s3cret"))
		Expect(operated.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("without a token", ending("token", "token", ""), "the token is missing"),
		Entry("with what cannot be a token", ending("token", "token", "s3cret\x01"),
			"the token has control characters"),
		Entry("without a choice", url.Values{}, "the form does not say what to end"),
	)

	It("says that one token does not find grants if several fields do", Label("O2"), func(ctx SpecContext) {
		operated = Operate(gatewayTo("http://127.0.0.1:1/mcp"),
			askingFor([]bootstrap.HostField{{Name: "user"}, {Name: "token", Secret: true}},
				"Authorization: Basic {base64(user:token)}"))
		refused := operated.endOnPage(ctx, ending("token", "token", "key-of-ann-1234"))
		Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(refused.Text).To(ContainSubstring("finds grants by the fields user, token together"))
	})

	DescribeTable("ends nothing for", Label("O3"), func(ctx SpecContext, status int, change func(*http.Request)) {
		kept := client.Connect(ctx)
		refused := operated.endOnPage(ctx, ending("client", "client", client.ID), change)
		Expect(refused.StatusCode).To(Equal(status), refused.Text)
		Expect(operated.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("a page of another site", 403, with("Origin", "https://evil.example")),
		Entry("a page after DNS rebinding", 403, func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Origin", "http://evil.example")
		}),
		Entry("a request without a page", 403, func(r *http.Request) { r.Header.Del("Origin") }),
		Entry("a method that only looks like a form", 405, func(r *http.Request) { r.Method = http.MethodPut }),
	)

	It("takes the form of a browser that names no origin", Label("O3"), func(ctx SpecContext) {
		done := operated.endOnPage(ctx, ending("client", "client", client.ID), func(r *http.Request) {
			r.Header.Del("Origin")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		})
		Expect(done.StatusCode).To(Equal(http.StatusSeeOther), done.Text)
	})

	It("ends grants in a browser, without a script", Label("O2", "browser"), func(ctx SpecContext) {
		token := operated.TokenFor(ctx, "ada", demosite.Author)
		ended, leaked := client.Connect(ctx), client.ConnectAs(ctx, token)
		browser := NewBrowser()
		browser.Do(ctx, chromedp.Navigate(operated.Admin+"/grants?person=editor"), withoutScripts,
			chromedp.Click(chromedp.CSS("article summary")), chromedp.Click(chromedp.CSS(`button[value="grant"]`)))
		Expect(browser.Text(ctx, ".done")).To(HavePrefix("Ended: 1."))
		Expect(operated.Call(ctx, ended.Access)).To(BeChallenged(operated.World, "invalid_token"))
		Expect(operated.Call(ctx, leaked.Access).StatusCode).To(Equal(http.StatusOK))
		browser.Do(ctx, chromedp.Navigate(operated.Admin+"/grants"),
			chromedp.Click(chromedp.CSS("main > form summary")),
			chromedp.SendKeys(chromedp.CSS("#token"), token), chromedp.Click(chromedp.CSS(`button[value="token"]`)))
		Expect(browser.Text(ctx, ".done")).To(HavePrefix("Ended: 1."))
		Expect(operated.Call(ctx, leaked.Access)).To(BeChallenged(operated.World, "invalid_token"))
	}, SpecTimeout(browserTime))

	It("is on no other listener, and not for other computers", Label("O3"), func(ctx SpecContext) {
		Expect(Get(ctx, operated.Issuer+"/grants").StatusCode).To(Equal(http.StatusNotFound))
		Expect(Post(ctx, operated.Issuer+"/grants", url.Values{}).StatusCode).To(Equal(http.StatusNotFound))
		operated = Operate(func(config *service.Config) { config.AdminAddr = "0.0.0.0:0" })
		operated.Admin = "http://" + outside() + operated.Admin[strings.LastIndex(operated.Admin, ":"):]
		Expect(operated.AskAdmin(ctx, "/readyz").StatusCode).To(Equal(http.StatusOK))
		Expect(operated.AskAdmin(ctx, "/grants").StatusCode).To(Equal(http.StatusForbidden))
		Expect(operated.endOnPage(ctx, ending("client", "client", client.ID)).StatusCode).
			To(Equal(http.StatusForbidden))
	})
})

var _ = Describe("The operator's overview", Label("operations", "O4"), func() {
	// plotted returns the text about each server, and how many parts of bars have the class.
	plotted := func(ctx context.Context, operated *Operated, class string) (sentences []string, bars int) {
		GinkgoHelper()
		page := operated.AskAdmin(ctx, "/")
		Expect(page.StatusCode).To(Equal(http.StatusOK), page.Text)
		words := regexp.MustCompile(`<span class="line">([^<]*)</span>`)
		for _, found := range words.FindAllStringSubmatch(page.Text, -1) {
			sentences = append(sentences, found[1])
		}
		return sentences, len(regexp.MustCompile(`<rect class="`+class+`" x="\d+" width=".8" height="[1-9]`).
			FindAllString(page.Text, -1))
	}

	It("counts and plots what was answered, refused and failed in the last day", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		operated := Operate(gatewayTo(upstream.URL+"/mcp"), func(config *service.Config) {
			config.Gateway.Policy.Tools = []string{"deny hang", "allow *"}
		})
		operated.Token = apiKey
		operated.Clock.Stop()
		access := operated.NewClient().Connect(ctx).Access
		operated.Call(ctx, "") // only looks for the authorization server
		operated.Call(ctx, access)
		operated.Call(ctx, access)
		operated.Call(ctx, "wrong")
		talk := operated.Converse(ctx, stateless, access)
		Expect(talk.Use(ctx, "hang", params{}).Error.Message).To(Equal(`unknown tool "hang"`))
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		Expect(operated.Call(ctx, access).StatusCode).To(BeNumerically(">=", 500))

		before, refused := plotted(ctx, operated, "refused")
		Expect(before).To(ConsistOf(
			HavePrefix("Calls: 2 answered, 2 refused, 1 failed. Most in a quarter of an hour: 5,")))
		Expect(refused).To(Equal(1), "all are in one quarter of an hour")
		operated.Clock.Advance(24*time.Hour - 15*time.Minute)
		later, _ := plotted(ctx, operated, "refused")
		Expect(later).To(Equal(before))
		operated.Clock.Advance(15 * time.Minute)
		gone, refused := plotted(ctx, operated, "refused")
		Expect(gone).To(Equal([]string{"No calls."}))
		Expect(refused).To(BeZero())
		operated.Call(ctx, "wrong")
		next, _ := plotted(ctx, operated, "refused")
		Expect(next).To(ConsistOf(HavePrefix("Calls: 0 answered, 1 refused, 0 failed.")))
	})

	It("plots each server of a gateway", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		operated := Operate(gatewayTo(upstream.URL+"/mcp"), func(config *service.Config) {
			config.Gateway.Upstreams = append(config.Gateway.Upstreams, serverAt("/files", upstream.URL+"/mcp"))
		})
		operated.Token = apiKey
		operated.Call(ctx, operated.NewClient().Connect(ctx).Access)
		sentences, answered := plotted(ctx, operated, "answered")
		Expect(sentences).
			To(HaveExactElements(HavePrefix("Calls: 1 answered, 0 refused, 0 failed."), Equal("No calls.")))
		Expect(answered).To(Equal(1))
		_, refused := plotted(ctx, operated, "refused")
		Expect(refused).To(BeZero())
		Expect(operated.AskAdmin(ctx, "/").Text).To(And(ContainSubstring(operated.Issuer+"/files"),
			ContainSubstring(upstream.URL+"/mcp"), ContainSubstring("Servers behind the gateway")))
	})

	It("says that nothing has happened yet", func(ctx SpecContext) {
		operated := Operate()
		sentences, _ := plotted(ctx, operated, "answered")
		Expect(sentences).To(Equal([]string{"No calls."}))
		Expect(operated.AskAdmin(ctx, "/").Text).To(And(ContainSubstring("No client has reached this service."),
			Not(ContainSubstring("Servers behind the gateway")), ContainSubstring(`<a href="/grants">`)))
	})
})
