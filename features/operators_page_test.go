package features_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

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
		Entry("by the client ID", 2, func() []string { return []string{"app", client.ID} }),
		Entry("by another app", 0, func() []string { return []string{"app", "client.example"} }),
		Entry("by person", 1, func() []string { return []string{"person", "ada"} }),
		Entry("by server", 2, func() []string { return []string{"server", operated.MCP()} }),
		Entry("by another server", 0, func() []string { return []string{"server", "/files"} }),
		Entry("by app and person", 1, func() []string { return []string{"app", "spec", "person", "ADA"} }),
		Entry("by app and another person", 0, func() []string { return []string{"app", "spec", "person", "bob"} }),
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

	It("says that there are none", Label("O1"), func(ctx SpecContext) {
		Expect(list(ctx).Text).To(ContainSubstring("No app has access now."))
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
	})

	DescribeTable("explains a form that ends nothing", Label("O2"), func(ctx SpecContext, form url.Values, why string) {
		kept := client.Connect(ctx)
		refused := operated.endOnPage(ctx, form)
		Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(refused.Text).To(ContainSubstring(`<p class="problem" role="alert">` + why))
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
		Entry("a page of another port of this computer", 403, with("Origin", "http://127.0.0.1:1")),
		Entry("a page in a sandbox", 403, with("Origin", "null")),
		Entry("a request across sites", 403, with("Sec-Fetch-Site", "cross-site")),
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
