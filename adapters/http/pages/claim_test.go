package pages

import (
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Showing a client's text", Label("A35"), func() {
	DescribeTable("cleans it",
		func(text, shown string) { Expect(claim(text)).To(Equal(shown)) },
		Entry("when it is an ordinary name", "Zoë’s 編集 assistant", "Zoë’s 編集 assistant"),
		Entry("when it turns the direction of reading", "\u202eedualC\u202c \u2066x\u2069\u200f\u061c", "edualC x"),
		Entry("when it holds control characters", "a\x00b\x1b[31mc\x7f\u0085d", "ab[31mc d"),
		Entry("when it breaks the line", "Claude\r\n\t\u2028Verified", "Claude Verified"),
		Entry("when it hides letters of no width", "Cl\u200ba\u200du\u00add\ufeffe\ufe0f\u3164", "Claude"),
		Entry("when it is blank in disguise", "\u2800\u00a0\u3000\u115f", ""),
		Entry("when it is not UTF-8", "a\xffb", "ab"),
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
