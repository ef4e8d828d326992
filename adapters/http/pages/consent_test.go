package pages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Asking for consent", func() {
	DescribeTable("shows the name once, as a claim that cannot end its quotation", Label("A35"),
		func(name, shown string) {
			page := showConsent(plain(func(c *Consent) { c.ClientName = name })).Body.String()
			Expect(strings.Count(page, shown)).To(Equal(1))
			Expect(page).To(ContainSubstring("<q><bdi>" + shown + "</bdi></q> <small>(unverified)</small>"))
		},
		Entry(nil, "Trusty Writer", "Trusty Writer"),
		Entry(nil, "“Claude” (verified) to «Gazette»? „Zoë’s", "Claude (verified) to Gazette? Zoë’s"),
		Entry(nil, "Claude」『x』 \"y\"", "Claudex y"),
	)

	It("never fills the password field", Label("A37", "B8"), func() {
		for _, problem := range []string{"", "This site did not accept the token."} {
			page := showConsent(plain(func(c *Consent) { c.Problem = problem })).Body.String()
			field := page[strings.Index(page, `<input type="password"`):]
			field = field[:strings.Index(field, ">")]
			Expect(field).To(ContainSubstring(`name="bearer_token" autocomplete="one-time-code"`))
			Expect(field).NotTo(ContainSubstring("value="))
		}
	})

	DescribeTable("tells when the access ends", Label("A44"),
		func(idle, longest time.Duration, sentence string) {
			page := showConsent(plain(func(c *Consent) {
				c.Offline, c.IdleTTL, c.GrantTTL = true, idle, longest
			})).Body.String()
			Expect(page).To(ContainSubstring(sentence))
		},
		Entry(nil, 30*24*time.Hour, 180*24*time.Hour,
			"The connection ends if unused for 30 days, and after 180 days in any case."),
		Entry(nil, time.Hour, 24*time.Hour,
			"The connection ends if unused for 1 hour, and after 1 day in any case."),
		Entry(nil, 36*time.Hour, 72*time.Hour,
			"The connection ends if unused for 36 hours, and after 3 days in any case."),
		Entry(nil, 48*time.Hour, 48*time.Hour, "The connection ends after 2 days."),
		Entry(nil, 48*time.Hour, 90*time.Minute, "The connection ends after 90 minutes."),
	)
})

func showCallback(accept string, c Callback) *httptest.ResponseRecorder {
	GinkgoHelper()
	w := httptest.NewRecorder()
	Expect(drawn(Appearance{}).For(accept).WriteCallback(w, c)).To(Succeed())
	return w
}

var _ = Describe("Showing the callback URL", Label("B22"), func() {
	const target = "http://127.0.0.1:4321/cb?a=%22&code=ppc_x&state=</textarea><script>alert(1)</script>&" +
		"iss=https%3A%2F%2Fcms.example"
	callback := Callback{
		URL:       target,
		ExpiresAt: time.Date(2026, 11, 26, 10, 5, 7, 0, time.FixedZone("", 3600)),
		Left:      5 * time.Minute,
		Manage:    manage,
	}

	It("lets its own script run and no other", Label("A38"), func() {
		w := showCallback("", callback)
		Expect(w.Code).To(Equal(http.StatusOK))
		Expect(w.Header()).To(HaveLen(8))
		Expect(w.Header().Get("Content-Security-Policy")).To(Equal("default-src 'none'; style-src 'nonce-" +
			styleNonce(w) + "'; base-uri 'none'; frame-ancestors 'none'; script-src 'nonce-" + styleNonce(w) + "'"))
		Expect(w.Header().Get("Referrer-Policy")).To(Equal("same-origin"))
		Expect(w.Header().Get("Cache-Control")).To(Equal("no-store"))
	})

	DescribeTable("says until when the URL works, by the clock of the world and from now",
		func(left time.Duration, words string) {
			c := callback
			c.Left = left
			Expect(showCallback("", c).Body.String()).
				To(ContainSubstring(words + `<time datetime="2026-11-26T09:05:07Z">09:05:07 UTC</time>.`))
		},
		Entry("of five minutes", 5*time.Minute, "It works once, for 5 minutes from now, until "),
		Entry("of almost three minutes", 3*time.Minute-2*time.Second, "It works once, for 2 minutes from now, until "),
		Entry("of less than two minutes", 2*time.Minute-2*time.Second, "It works once, until "),
	)

	for _, tag := range languages[1:] {
		It("speaks "+tag.String(), func() {
			page := showCallback(tag.String(), callback).Body.String()
			for english := range spoken() {
				Expect(page).NotTo(ContainSubstring(">" + english))
			}
			Expect(page).NotTo(ContainSubstring("%!"))
			Expect(page).To(ContainSubstring("09:05:07 UTC"))
		})
	}
})

var _ = Describe("Showing a client's text", Label("A35"), func() {
	DescribeTable("cleans it",
		func(text, shown string) { Expect(claim(text)).To(Equal(shown)) },
		Entry("when it is an ordinary name", "Zoë’s 編集 assistant", "Zoë’s 編集 assistant"),
		Entry("when it turns the direction of reading", "\u202eedualC\u202c \u2066x\u2069\u200f\u061c", "edualC x"),
		Entry("when it holds control characters", "a\x00b\x1b[31mc\x7f\u0085d", "ab[31mc d"),
		Entry("when it hides letters of no width", "Cl\u200ba\u200du\u00add\ufeffe\ufe0f\u3164", "Claude"),
		Entry("when it is blank in disguise", "\u2800\u00a0\u3000\u115f", ""),
	)

	It("cuts a name at its end, after 80 characters", func() {
		Expect(claim(strings.Repeat("é", 80))).To(Equal(strings.Repeat("é", 80)))
		Expect(claim(strings.Repeat("é", 81))).To(Equal(strings.Repeat("é", 79) + "…"))
	})

	It("cuts a host at its start, because its end tells who owns it", func() {
		shown := host("claude.ai." + strings.Repeat("a", 90) + ".evil.example:8443")
		Expect(shown).To(HavePrefix("…a"))
		Expect(shown).To(HaveSuffix(".evil.example:8443"))
		Expect(utf8.RuneCountInString(shown)).To(Equal(80))
	})

	DescribeTable("never lets it become markup",
		func(hostile string) {
			page := showConsent(plain(func(c *Consent) {
				c.ClientName, c.ClientHost, c.RedirectHost = hostile, hostile, hostile
				c.ForeignRedirect, c.Ticket = true, hostile
			})).Body.String()
			problem := withReturn()
			problem.ClientHost, problem.Return.Host, problem.Return.Ticket = hostile, hostile, hostile
			page += showProblem(problem).Body.String()
			Expect(page).NotTo(ContainSubstring("<hostile"))
			Expect(page).NotTo(ContainSubstring(`"hostile`))
			Expect(page).To(ContainSubstring("hostile"))
		},
		Entry("when it opens an element", "<hostile onload=alert(1)>"),
		Entry("when it closes the element around it", "</bdi></q></title></style><hostile>"),
		Entry("when it closes the attribute around it", `"hostile autofocus onfocus=alert(1) x="`),
	)
})
