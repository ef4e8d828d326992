package features_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"database/sql"
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

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/features/chromium"
	"github.com/pasteport/pasteport/features/suite"
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

	DescribeTable("refuses the form of", Label("B3"), func(ctx SpecContext, name string) {
		consent := client.Consent(ctx)
		forged := struct{ Action, Ticket, Token string }{consent.Action, consent.Hidden.Get("ticket"), world.Token}
		browser.Do(ctx, chromedp.Navigate(anotherSite(name, forgedForm, forged)),
			chromedp.Click(chromedp.CSS("button")))
		Expect(browser.Text(ctx, "main")).To(ContainSubstring("sent from another site"))
		Expect(world.Log.String()).NotTo(ContainSubstring("grant_created"))
		Expect(consent.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther), "the form is still valid")
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

// browserWithLogins starts a Chromium in whose profile a login for each origin is saved.
func browserWithLogins(origins ...string) *Browser {
	GinkgoHelper()
	suite.Needs("browser")
	folder := GinkgoT().TempDir()
	profile := chromedp.UserDataDir(folder)
	_, quit, err := chromium.Open(chromium.DejaVu, profile) // makes the profile
	Expect(err).NotTo(HaveOccurred())
	saved := filepath.Join(folder, "Default", "Login Data")
	Eventually(saved).WithTimeout(patience).Should(BeARegularFile())
	Expect(quit()).To(Succeed())
	Expect(saveLogins(saved, origins...)).To(Succeed())
	window, quit, err := chromium.Open(chromium.DejaVu, profile)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(quit()).To(Succeed()) })
	return &Browser{window}
}

// saveLogins writes what Chromium's password manager writes where it has no keyring of the system.
func saveLogins(file string, origins ...string) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	key, err := pbkdf2.Key(sha1.New, "peanuts", []byte("saltysalt"), 1, aes.BlockSize)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	password := []byte("password-of-site") // fills one block, so that the padding is another one
	password = append(password, bytes.Repeat([]byte{aes.BlockSize}, aes.BlockSize)...)
	cipher.NewCBCEncrypter(block, bytes.Repeat([]byte(" "), aes.BlockSize)).CryptBlocks(password, password)
	for _, origin := range origins {
		if _, err := db.Exec(`INSERT INTO logins (origin_url, action_url, username_element, username_value,
			password_element, password_value, submit_element, signon_realm, date_created, blacklisted_by_user, scheme,
			password_type, times_used, form_data, skip_zero_click, generation_upload_status, possible_username_pairs)
			VALUES (?1, ?1, '', 'ada', '', ?2, '', ?1, 13300000000000000, 0, 0, 0, 1, x'', 0, 0, x'')`,
			origin+"/", append([]byte("v10"), password...)); err != nil {
			return err
		}
	}
	return nil
}

// filled returns the names of the fields that the password manager has filled in. It waits until
// the password manager has filled in a login form that is added to the page.
func (b *Browser) filled(ctx context.Context) (names []string) {
	GinkgoHelper()
	b.Do(ctx, chromedp.Evaluate[chromedp.Void](`document.body.insertAdjacentHTML("beforeend",
		'<form id="login"><input name="user" autocomplete="username"><input name="password" type="password"></form>')`))
	const named = `Array.from(document.querySelectorAll("input:autofill"), e => e.name)`
	Eventually(func() []string {
		names = Ask(ctx, b, chromedp.Evaluate[[]string](named))
		return names
	}).WithContext(ctx).WithTimeout(patience).Should(ContainElements("user", "password"))
	return names
}

var _ = Describe("A password manager with a saved login for the site", Label("browser", "A37"), func() {
	It("fills it into no form of Pasteport", func(ctx SpecContext) {
		const key = "key-of-ada-1234"
		site := NewWorld()
		upstream := NewUpstreamReading(basicCredentials, "ada:"+key)
		fields := []bootstrap.HostField{{Name: "user"}, {Name: "token", Secret: true}}
		gateway := NewGateway(upstream.URL+"/mcp", askingFor(fields, "Authorization: Basic {base64(user:token)}"))
		browser := browserWithLogins(site.Issuer, gateway.Issuer)
		site.NewClient().Connect(ctx)
		gateway.NewClient().ConnectWith(ctx, "user", "ada", "token", key)
		for world, entered := range map[*World][]string{
			site:    {`input[name="bearer_token"]`, site.Token},
			gateway: {`input[name="field_user"]`, "ada", `input[name="field_token"]`, key},
		} {
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/authorize?"+world.NewClient().Request().Encode()))
			Expect(browser.filled(ctx)).To(HaveLen(2), "consent")
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/connections"))
			Expect(browser.filled(ctx)).To(HaveLen(2), "connections")
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/connections"))
			for i := 0; i < len(entered); i += 2 {
				browser.Do(ctx, chromedp.SendKeys(chromedp.CSS(entered[i]), entered[i+1]))
			}
			browser.Do(ctx, chromedp.Click(chromedp.CSS(`button[value="show"]`)))
			Expect(browser.Text(ctx, "h2")).To(ContainSubstring("Spec Client"))
			Expect(browser.filled(ctx)).To(HaveLen(2), "replacement")
		}
	}, SpecTimeout(3*time.Minute))
})
