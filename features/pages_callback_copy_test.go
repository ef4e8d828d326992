package features_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"golang.org/x/net/html"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// ApproveElsewhere pastes the token and presses the button for an app on another computer.
func (p Page) ApproveElsewhere(ctx context.Context, token string, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return p.Submit(ctx, url.Values{"decision": {"approve_elsewhere"}, "bearer_token": {token}}, change...)
}

func (r Response) Callback() *url.URL {
	GinkgoHelper()
	Expect(r.StatusCode).To(Equal(http.StatusOK), r.Text)
	for node := range must(html.Parse(strings.NewReader(r.Text))).Descendants() {
		if node.Type == html.ElementNode && node.Data == "textarea" {
			_, readOnly := attributes(node)["readonly"]
			Expect(readOnly).To(BeTrue())
			return must(url.Parse(node.FirstChild.Data))
		}
	}
	Fail("the page has no field with the callback URL: " + r.Text)
	return nil
}

func attributes(node *html.Node) map[string]string {
	all := map[string]string{}
	for _, a := range node.Attr {
		all[a.Key] = a.Val
	}
	return all
}

func beACallbackPage() types.GomegaMatcher {
	return And(BeAPage(http.StatusOK, "One step left"),
		HaveField("Header", And(
			HaveKeyWithValue("Cache-Control", []string{"no-store"}),
			HaveKeyWithValue("X-Frame-Options", []string{"DENY"}),
			HaveKeyWithValue("Referrer-Policy", []string{"same-origin"}),
			HaveKeyWithValue("X-Content-Type-Options", []string{"nosniff"}),
			HaveKeyWithValue("Content-Security-Policy", ConsistOf(
				MatchRegexp(`^default-src 'none'; style-src '(nonce-[A-Z2-7]+)'; base-uri 'none'; frame-ancestors `+
					`'none'; script-src 'nonce-[A-Z2-7]+'$`))),
			Not(HaveKey("Set-Cookie")), Not(HaveKey("Refresh")))))
}

var _ = Describe("Approving an app on another computer", Label("B21"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})
	const button = `value="approve_elsewhere"`

	It("shows the callback URL on a page instead of redirecting, and the client connects with it",
		Label("B11", "B22"), func(ctx SpecContext) {
			answer := client.Consent(ctx).ApproveElsewhere(ctx, world.Token)
			Expect(answer).To(beACallbackPage())
			callback := answer.Callback()
			Expect(callback.String()).To(HavePrefix(client.Redirect + "?"))
			Expect(callback.Query()).To(And(HaveLen(3), HaveEach(HaveLen(1))))
			Expect(callback.Query().Get("state")).To(Equal(client.State))
			Expect(callback.Query().Get("iss")).To(Equal(world.Issuer))
			tokens := client.Token(ctx, client.Exchange(callback.Query().Get("code"))).Tokens()
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		})

	It("says what to do with the URL, warns of other people, and says until when it works",
		Label("B22"), func(ctx SpecContext) {
			world = NewWorld(func(config *service.Config) { config.AuthCodeTTL = 4 * time.Minute })
			client = world.NewClient()
			page := client.Consent(ctx)
			before := world.Clock.Now()
			answer := page.ApproveElsewhere(ctx, world.Token)
			Expect(answer.Text).To(And(ContainSubstring("Paste it into the app that waits for it"),
				ContainSubstring("Never give this address to another person."),
				ContainSubstring("for 4 minutes from now, until <time")))

			world.Clock.Advance(90 * time.Second)
			again := page.ApproveElsewhere(ctx, world.Token)
			Expect(again.Callback()).To(Equal(answer.Callback()), "the form gives one code")
			Expect(again.Text).To(ContainSubstring("for 2 minutes from now, until <time"))
			Expect(validUntil(again)).
				To(And(Equal(validUntil(answer)), BeTemporally("~", before.Add(4*time.Minute), 2*time.Second)))

			world.Clock.Advance(time.Minute)
			Expect(page.ApproveElsewhere(ctx, world.Token).Text).To(ContainSubstring("It works once, until <time"))
			world.Clock.Advance(90 * time.Second)
			Expect(client.Token(ctx, client.Exchange(answer.Callback().Query().Get("code"))).Tokens().Error).
				To(Equal("invalid_grant"))
		})

	It("is offered only when the redirect goes to a loopback host", func(ctx SpecContext) {
		Expect(client.Consent(ctx).Text).To(ContainSubstring(button))
		Expect(client.Consent(ctx, set("redirect_uri", "https://client.example/callback")).Text).
			NotTo(ContainSubstring(button))
	})

	DescribeTable("is refused for another redirect, before the token is checked,",
		func(ctx SpecContext, redirect string) {
			world = NewWorld(func(config *service.Config) { config.AllowedPrivateSchemes = []string{"cursor"} })
			client = world.ClientAt(redirect, "")
			page := client.Consent(ctx)
			Expect(page.ApproveElsewhere(ctx, world.Token)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
			Expect(page.ApproveElsewhere(ctx, "demo_wrong")).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
			Expect(world.Log.String()).
				NotTo(Or(ContainSubstring("grant_created"), ContainSubstring("host_token_rejected")))
			Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther), "the form is still valid")
		},
		Entry("to a web site", "https://client.example/callback"),
		Entry("to https on this computer", "https://localhost/callback"),
		Entry("to an installed app", "cursor://oauth/callback"),
	)

	It("shows the form again after a wrong or missing token, with both buttons",
		Label("B7", "B8"), func(ctx SpecContext) {
			page := client.Consent(ctx)
			missing := page.ApproveElsewhere(ctx, "")
			Expect(missing).To(BeAPage(http.StatusBadRequest, "Paste your token first."))
			wrong := page.ApproveElsewhere(ctx, "demo_wrong")
			Expect(wrong).To(BeAPage(http.StatusForbidden, "does not know that token"))
			Expect(wrong.Text).To(ContainSubstring(button))
			Expect(ReadPage(wrong).ApproveElsewhere(ctx, world.Token)).To(beACallbackPage())
		})

	It("refuses a form that is too old, used or of another site", Label("B3", "B4", "B13"), func(ctx SpecContext) {
		page := client.Consent(ctx)
		Expect(page.ApproveElsewhere(ctx, world.Token, with("Sec-Fetch-Site", "cross-site"))).
			To(BeASafePage(http.StatusForbidden, "invalid_request"))
		client.Token(ctx, client.Exchange(page.ApproveElsewhere(ctx, world.Token).Callback().Query().Get("code")))
		Expect(page.ApproveElsewhere(ctx, world.Token)).To(And(BeASafePage(http.StatusBadRequest, "invalid_request"),
			BeAPage(http.StatusBadRequest, "used already")))
		page = client.Consent(ctx)
		world.Clock.Advance(10 * time.Minute)
		Expect(page.ApproveElsewhere(ctx, world.Token)).
			To(And(BeASafePage(http.StatusBadRequest, "invalid_request"), BeAPage(http.StatusBadRequest, "too old")))
	})

	It("writes neither the URL nor the code to the log, the trace, the metrics or a file",
		Label("B15", "B22", "H3"), func(ctx SpecContext) {
			operated := Operate()
			client = operated.NewClient()
			callback := client.Consent(ctx).ApproveElsewhere(ctx, operated.Token).Callback()
			operated.Newest(ctx, "authorize client_metadata page token_judged code_issued")
			places := filesOf(operated.Dir)
			for _, path := range []string{"/", "/connections.json", "/connections/" + operated.Traces(ctx)[0].ID,
				"/metrics"} {
				places[path] = []byte(operated.AskAdmin(ctx, path).Text)
			}
			places["log"] = []byte(operated.Log.String())
			Expect(places["log"]).To(ContainSubstring("callback_shown"))
			for place, content := range places {
				for _, secret := range []string{callback.Query().Get("code"), client.State} {
					for _, spelled := range spellings(secret) {
						Expect(strings.Contains(string(content), spelled)).
							To(BeFalse(), "%s found in %s", spelled, place)
					}
				}
			}
		})
})

// validUntil returns the time that the page names.
func validUntil(answer Response) time.Time {
	GinkgoHelper()
	_, rest, _ := strings.Cut(answer.Text, `<time datetime="`)
	named, _, _ := strings.Cut(rest, `"`)
	until, err := time.Parse(time.RFC3339, named)
	Expect(err).NotTo(HaveOccurred(), answer.Text)
	return until
}

var _ = Describe("The page with the callback URL in a real browser", Label("browser", "B22", "N4"), func() {
	var world *World
	var client *Client
	var browser *Browser
	BeforeEach(func() {
		browser = NewBrowser()
		world = NewWorld()
		client = world.NewClient()
	})
	open := func(ctx context.Context) {
		GinkgoHelper()
		browser.Look(ctx, 390, 844, "light")
		browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/authorize?"+client.Request().Encode()))
	}
	press := func(ctx context.Context, keys ...string) {
		GinkgoHelper()
		for _, key := range keys {
			browser.Do(ctx, chromedp.KeyEvent(key))
		}
	}
	click := func(ctx context.Context, count int) {
		GinkgoHelper()
		middle := Ask(ctx, browser, chromedp.Evaluate[[]float64](
			`(box => [box.x + box.width / 2, box.y + box.height / `+
				`2])(document.getElementById("callback").getBoundingClientRect())`))
		browser.Do(ctx, chromedp.MouseClickXY(middle[0], middle[1], chromedp.ClickCount(count)))
	}
	pasted := func(ctx context.Context) string { // into the first field of another page
		open(ctx)
		press(ctx, "\t", "\t")
		browser.Do(ctx, chromedp.KeyEvent("v",
			chromedp.KeyModifiers(chromedp.ModifierCtrl), func(p *input.DispatchKeyEventParams) {
				p.Commands = []string{"paste"}
			}))
		return Ask(ctx, browser, chromedp.Evaluate[string](`document.activeElement.value`))
	}
	selection := func(ctx context.Context) string {
		return Ask(ctx, browser,
			chromedp.Evaluate[string](
				`(f => f.value.slice(f.selectionStart, f.selectionEnd))(document.getElementById("callback"))`))
	}
	connects := func(ctx context.Context, copied string) {
		GinkgoHelper()
		callback := must(url.Parse(copied))
		Expect(callback.Query().Get("state")).To(Equal(client.State))
		tokens := client.Token(ctx, client.Exchange(callback.Query().Get("code"))).Tokens()
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	}

	It("is reached and copied from with the keyboard alone, on a phone", func(ctx SpecContext) {
		open(ctx)
		press(ctx, "\t", "\t")
		browser.Do(ctx, chromedp.KeyEvent(world.Token))
		press(ctx, "\t", "\t", "\t", "\t", "\r", "\t", "\r")
		Expect(browser.Text(ctx, "h1:has(~ #use)")).To(ContainSubstring("One step left"))
		press(ctx, "\t")
		Expect(Ask(ctx, browser, chromedp.Evaluate[string](`document.activeElement.id`))).To(Equal("callback"))
		press(ctx, "\t")
		Expect(Ask(ctx, browser, chromedp.Evaluate[string](`document.activeElement.id`))).To(Equal("copy"))
		press(ctx, "\r")
		Expect(browser.Text(ctx, "#copied:not(:empty)")).To(ContainSubstring("Now paste it into the app."))
		connects(ctx, pasted(ctx))
	}, SpecTimeout(browserTime))

	It("selects the whole address at a click", func(ctx SpecContext) {
		open(ctx)
		browser.Do(ctx, chromedp.SendKeys(chromedp.CSS(`input[name="bearer_token"]`), world.Token),
			chromedp.Click(chromedp.CSS("summary")),
			chromedp.Click(chromedp.CSS(`button[value="approve_elsewhere"]`)))
		Expect(browser.Text(ctx, "h1:has(~ #use)")).To(ContainSubstring("One step left"))
		click(ctx, 1)
		connects(ctx, selection(ctx))
	}, SpecTimeout(browserTime))

	DescribeTable("needs no script: the whole address is selected",
		func(ctx SpecContext, selectAll func(context.Context)) {
			open(ctx)
			browser.Do(ctx, withoutScripts, chromedp.SendKeys(chromedp.CSS(`input[name="bearer_token"]`), world.Token),
				chromedp.Click(chromedp.CSS("summary")),
				chromedp.Click(chromedp.CSS(`button[value="approve_elsewhere"]`)))
			Expect(browser.Text(ctx, "h1:has(~ #use)")).To(ContainSubstring("One step left"))
			Expect(Ask(ctx, browser, chromedp.Evaluate[bool](`document.getElementById("copy").hidden`))).To(BeTrue())
			selectAll(ctx)
			connects(ctx, selection(ctx))
		},
		Entry("by a triple click", SpecTimeout(browserTime), func(ctx context.Context) {
			for clicks := 1; clicks <= 3; clicks++ {
				click(ctx, clicks)
			}
		}),
		Entry("by Tab and Ctrl+A", SpecTimeout(browserTime), func(ctx context.Context) {
			press(ctx, "\t")
			browser.Do(ctx, chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		}),
	)
})

// withoutScripts ends the scripts of pages; those of the spec still run.
func withoutScripts(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
	_, err = cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	return nothing, err
}
