package features_test

import (
	"context"
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// anotherSite serves one page under the name, which decides whether a browser treats it as the
// issuer's site.
func anotherSite(name string, page *template.Template, values any) (address string) {
	GinkgoHelper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		Expect(page.Execute(w, values)).To(Succeed())
	}))
	DeferCleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", name, 1)
}

var (
	plainPage   = template.Must(template.New("").Parse(`<!doctype html><title>{{.}}</title><h1 id="client">{{.}}</h1>`))
	framingPage = template.Must(template.New("").
			Parse(`<!doctype html><title>Frames</title>{{range .}}<iframe src="{{.}}"></iframe>{{end}}`))
	forgedForm = template.Must(template.New("").
			Parse(`<!doctype html><title>Win a prize</title><form method="post" action="{{.Action}}">
		<input type="hidden" name="ticket" value="{{.Ticket}}">
		<input type="hidden" name="bearer_token" value="{{.Token}}">
		<button name="decision" value="approve">Win</button></form>`))
)

var _ = Describe("In a real browser", Label("browser", "N4"), func() {
	var world *World
	var client *Client
	var browser *Browser
	BeforeEach(func() {
		browser = NewBrowser()
		world = NewWorld()
		client = world.NewClient()
	})

	It("approves, also when the client redirects to another site", Label("A38", "B12"), func(ctx SpecContext) {
		done := anotherSite("localhost", plainPage, "Connected")
		var callbacks []*http.Request
		program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			callbacks = append(callbacks, r)
			http.Redirect(w, r, done, http.StatusFound)
		}))
		DeferCleanup(program.Close)
		client.Redirect = program.URL + "/callback"

		browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/authorize?"+client.Request().Encode()),
			chromedp.SendKeys(chromedp.CSS(`input[name="bearer_token"]`), world.Token),
			chromedp.Click(chromedp.CSS(`button[value="approve"]`)))

		Expect(browser.Text(ctx, "h1#client")).To(Equal("Connected"))
		Expect(callbacks).To(HaveLen(1))
		Expect(callbacks[0].Method).To(Equal(http.MethodGet))
		Expect(callbacks[0].Referer()).To(BeEmpty())
		tokens := client.Token(ctx, client.Exchange(callbacks[0].FormValue("code"))).Tokens()
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	}, SpecTimeout(browserTime))

	It("shows a page that works with the keyboard alone", Label("A37", "B21"), func(ctx SpecContext) {
		browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/authorize?"+client.Request().Encode()))
		var stops []string
		for range 5 {
			browser.Do(ctx, chromedp.KeyEvent("\t"))
			stops = append(stops,
				Ask(ctx, browser,
					chromedp.Evaluate[string](
						`document.activeElement.name + " " + (document.activeElement.value || `+
							`document.activeElement.href || "")`)))
		}
		Expect(stops[:4]).
			To(Equal([]string{"allow offline_access", "bearer_token ", "decision approve", "decision deny"}))
		Expect(strings.TrimSpace(stops[4])).To(ContainSubstring("/oauth/connections"))
	}, SpecTimeout(browserTime))

	It("shows a page with choices that works with the keyboard alone", Label("A37", "B21"), func(ctx SpecContext) {
		world = NewWorld(articleScopes, func(config *service.Config) {
			config.GrantChoices = []time.Duration{time.Hour, 24 * time.Hour}
		})
		request := world.NewClient().Request()
		request.Set("scope", allArticleScopes)
		browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/authorize?"+request.Encode()))
		Expect(browser.tab(ctx, 10)).
			To(HaveExactElements("allow comment", "allow change", "allow delete", "allow offline_access",
				HavePrefix("lifetime"), "bearer_token", "decision approve", "decision deny",
				"See or end your connections", "My app runs on another computer"))
		browser.Do(ctx, chromedp.KeyEvent("\r"))
		Expect(browser.tab(ctx, 1)).To(HaveExactElements("decision approve_elsewhere"))
	}, SpecTimeout(browserTime))

	It("shows connections that the keyboard alone can end and renew", Label("J21", "J19"),
		func(ctx SpecContext) {
			world = NewWorld(articleScopes)
			world.NewClient().Connect(ctx, set("scope", allArticleScopes))
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/connections"))
			Expect(browser.tab(ctx, 1)).To(HaveExactElements("bearer_token"))
			browser.Do(ctx, chromedp.KeyEvent(world.Token+"\r"))
			Expect(browser.Text(ctx, "h2")).To(ContainSubstring("Spec Client"))
			Expect(browser.tab(ctx, 1)).To(HaveExactElements("End this connection"))
			browser.Do(ctx, chromedp.KeyEvent("\r"))
			Expect(browser.tab(ctx, 4)).
				To(HaveExactElements("decision end", "decision page", "bearer_token", "decision replace"))
		}, SpecTimeout(browserTime))

	It("does not show the page in a frame", Label("A41"), func(ctx SpecContext) {
		consent := world.Issuer + "/oauth/authorize?" + client.Request().Encode()
		harmless := anotherSite("127.0.0.1", plainPage, "Harmless") + "/"
		browser.Do(ctx, chromedp.Navigate(anotherSite("127.0.0.1", framingPage, []string{harmless, consent})))
		shown, refused := browser.Frames(ctx)
		Expect(shown).To(ConsistOf(harmless))
		Expect(refused).To(ConsistOf(consent))
	}, SpecTimeout(browserTime))

	DescribeTable("refuses the form of", Label("B3"),
		func(ctx SpecContext, name string) {
			consent := client.Consent(ctx)
			forged := struct{ Action, Ticket, Token string }{consent.Action, consent.Hidden.Get("ticket"), world.Token}
			browser.Do(ctx, chromedp.Navigate(anotherSite(name, forgedForm, forged)),
				chromedp.Click(chromedp.CSS("button")))
			Expect(browser.Text(ctx, "main")).To(ContainSubstring("sent from another site"))
			Expect(world.Log.String()).NotTo(ContainSubstring("grant_created"))
			Expect(consent.Approve(ctx, world.Token).StatusCode).
				To(Equal(http.StatusSeeOther), "the form is still valid")
		},
		Entry("another site", SpecTimeout(browserTime), "localhost"),
		Entry("another origin of the same site", SpecTimeout(browserTime), "127.0.0.1"),
	)
})

// tab presses the tab key n times, and returns the name and value or the text of where it stops.
func (b *Browser) tab(ctx context.Context, n int) (stops []string) {
	GinkgoHelper()
	for range n {
		b.Do(ctx, chromedp.KeyEvent("\t"))
		stops = append(stops, strings.TrimSpace(Ask(ctx, b, chromedp.Evaluate[string](
			`(e => e.name ? e.name + " " + e.value : e.textContent)(document.activeElement)`))))
	}
	return stops
}

// picturesVariable names the folder for screenshots of every page.
const picturesVariable = "PICTURES"

// replayed serves a response to a browser and counts the requests.
func replayed(answer Response) (address string, fetches *atomic.Int32) {
	GinkgoHelper()
	fetches = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/favicon.ico" { // browsers request it by themselves
			http.NotFound(w, r)
			return
		}
		fetches.Add(1)
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write([]byte(answer.Text))
	}))
	DeferCleanup(server.Close)
	return server.URL, fetches
}

// Picture saves a screenshot of the whole page if picturesVariable is set.
func (b *Browser) Picture(ctx context.Context, name string) {
	GinkgoHelper()
	folder := os.Getenv(picturesVariable)
	if folder == "" {
		return
	}
	Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(folder, name), Ask(ctx, b, chromedp.FullScreenshot(100)), 0o644)).To(Succeed())
}
