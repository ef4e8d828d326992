package pages

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Asking for consent", func() {
	It("shows who asks, the addresses that were checked, what is granted, and then the field",
		Label("A35", "A43"), func() {
			page := showConsent(plain(func(c *Consent) {
				c.ClientHost, c.RedirectHost = "claude.ai", "localhost:51234"
				c.Permissions = permissionsOf("Read articles.", "Publish articles.")
			})).Body.String()
			at := 0
			for _, next := range []string{
				`<h1>Connect <span class="claim"><q><bdi>Claude</bdi></q> <small>(unverified)</small></span> to ` +
					`<bdi>cms.example</bdi>?</h1>`,
				`<dt>App published at</dt><dd><bdi class="host" dir="ltr">claude.ai</bdi></dd>`,
				`<dt>Access goes to</dt><dd><bdi class="host" dir="ltr">localhost:51234</bdi></dd>`,
				`<dt>Server</dt><dd><bdi class="host" dir="ltr">https://cms.example/mcp</bdi></dd>`,
				`<input type="checkbox" checked disabled> <span>Read articles.</span>`,
				`<input type="checkbox" checked disabled> <span>Publish articles.</span>`,
				`<input type="password"`,
				`value="approve"`,
			} {
				found := strings.Index(page[at:], next)
				Expect(found).To(BeNumerically(">=", 0), "%s in %s", next, page[at:])
				at += found
			}
		})

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

	DescribeTable("says so when nothing of the name can be seen", func(name string) {
		Expect(showConsent(plain(func(c *Consent) { c.ClientName = name })).Body.String()).
			To(And(ContainSubstring("<h1>Connect an app to <bdi>cms.example</bdi>?</h1>"),
				Not(ContainSubstring("<q>"))))
	},
		Entry(nil, ""), Entry(nil, "\u202e\u200b\u3164"), Entry(nil, "“”"))

	It("posts a hidden ticket, one empty password field and a decision", Label("A37"), func() {
		page := showConsent(plain()).Body.String()
		Expect(page).To(ContainSubstring(`<form method="post" action="` + action + `"`))
		Expect(page).To(ContainSubstring(`<input type="hidden" name="ticket" value="sealed-ticket">`))
		Expect(page).To(ContainSubstring(`<button class="main" type="submit" name="decision" value="approve">`))
		Expect(page).To(ContainSubstring(`<button type="submit" name="decision" value="deny" formnovalidate>`))
		Expect(strings.Count(page, "<input")).To(Equal(2))
		Expect(page).To(ContainSubstring(`<label for="bearer_token">Your API token for <bdi>cms.example</bdi></label>`))
	})

	DescribeTable("never fills the password field", Label("A37", "B8"),
		func(problem string) {
			page := showConsent(plain(func(c *Consent) { c.Problem = problem })).Body.String()
			field := page[strings.Index(page, `<input type="password"`):]
			field = field[:strings.Index(field, ">")]
			Expect(field).To(ContainSubstring(`name="bearer_token" autocomplete="one-time-code"`))
			Expect(field).NotTo(ContainSubstring("value="))
		},
		Entry("when it is asked for the first time", ""),
		Entry("when a token was refused", "This site did not accept the token."),
	)

	It("announces a problem and puts the cursor where it can be solved", Label("B8"), func() {
		page := showConsent(plain(func(c *Consent) { c.Problem = "Too many wrong tokens." })).Body.String()
		Expect(page).To(ContainSubstring(`role="alert">Too many wrong tokens.</p>`))
		Expect(page).To(ContainSubstring(`aria-describedby="problem why" autofocus>`))
		Expect(page).To(ContainSubstring("<title>Not connected yet: Connect an app to cms.example?</title>"))
	})

	It("lets the reader begin at the top when nothing went wrong", func() {
		Expect(showConsent(plain()).Body.String()).
			NotTo(Or(ContainSubstring("autofocus"), ContainSubstring(`role="alert"`)))
	})

	It("refuses an action that would run a script", func() {
		Expect(showConsent(plain(func(c *Consent) { c.Action = "javascript:alert(1)" })).Body.String()).
			NotTo(ContainSubstring("javascript:"))
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

	DescribeTable("tells access that cannot be renewed, and how long it lasts", Label("A44"),
		func(access, longest time.Duration, lasts string) {
			page := showConsent(plain(func(c *Consent) { c.AccessTTL, c.GrantTTL = access, longest })).Body.String()
			Expect(page).To(
				ContainSubstring("This access ends by itself after " + lasts + ". The app then has to ask you again."))
		},
		Entry(nil, time.Hour, 48*time.Hour, "1 hour"), Entry(nil, 24*time.Hour, 2*time.Hour, "2 hours"),
		Entry(nil, time.Minute, time.Hour, "1 minute"), Entry(nil, 90*time.Second, time.Hour, "1 minute"),
		Entry(nil, 5*time.Minute, time.Hour, "5 minutes"),
	)
})

var _ = Describe("Warning before consent", Label("A36"), func() {
	It("keeps quiet when there is nothing to warn of", func() {
		Expect(showConsent(plain()).Body.String()).NotTo(ContainSubstring("<ul class=\"warnings\""))
	})

	DescribeTable("speaks up",
		func(change func(*Consent), words string) {
			page := showConsent(plain(change)).Body.String()
			Expect(page).To(ContainSubstring(words))
			Expect(strings.Count(page, "<li><strong>")).To(Equal(1))
			Expect(page).To(MatchRegexp(`[.]</strong> \pL`), "two sentences")
		},
		Entry("when the redirect goes to this computer",
			func(c *Consent) { c.Loopback = true }, "a program on this computer"),
		Entry("when the redirect opens an installed app",
			func(c *Consent) { c.PrivateScheme = true }, "goes to an app on this device"),
		Entry("when the redirect leaves the client's host",
			func(c *Consent) { c.ForeignRedirect, c.RedirectHost = true, "elsewhere.example" },
			`published at <bdi class="host" dir="ltr">claude.ai</bdi>, `+
				`but its access goes to <bdi class="host" dir="ltr">elsewhere.example</bdi>`),
		Entry("when the client's document does not name itself", Label("C23"),
			func(c *Consent) { c.Unnamed = true }, "description does not contain its own address"),
	)
})
