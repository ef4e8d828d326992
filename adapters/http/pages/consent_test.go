package pages

import (
	"strings"
	"time"

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

	DescribeTable("says so when nothing of the name can be seen", func(name string) {
		Expect(showConsent(plain(func(c *Consent) { c.ClientName = name })).Body.String()).
			To(And(ContainSubstring("<h1>Connect an app to <bdi>cms.example</bdi>?</h1>"),
				Not(ContainSubstring("<q>"))))
	},
		Entry(nil, ""), Entry(nil, "\u202e\u200b\u3164"), Entry(nil, "“”"))

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
