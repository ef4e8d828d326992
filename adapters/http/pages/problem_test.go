package pages

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Telling a problem", Label("A40"), func() {
	It("says what happened, what to do, and which incident to report", Label("C43"), func() {
		page := showProblem(Problem{
			Title:      "This app’s description is not valid",
			Text:       "It breaks a rule.",
			Code:       "invalid_client",
			Incident:   "7KQ2M4XW",
			ClientHost: "app.example",
		}).Body.String()
		Expect(page).To(ContainSubstring("<title>This app’s description is not valid</title>"))
		Expect(page).To(ContainSubstring("<h1>This app’s description is not valid</h1>"))
		Expect(page).To(ContainSubstring("It breaks a rule."))
		Expect(page).To(ContainSubstring("start again in the app"))
		Expect(page).To(ContainSubstring("<code>invalid_client</code>"))
		Expect(page).To(ContainSubstring("<code>7KQ2M4XW</code>"))
		Expect(page).To(ContainSubstring(">app.example</bdi>"))
	})

	It("prefers the advice of the caller", func() {
		page := showProblem(Problem{Title: "Later", Advice: "Reload in a minute."}).Body.String()
		Expect(page).To(ContainSubstring("<p>Reload in a minute.</p>"))
		Expect(page).NotTo(ContainSubstring("start again in the app"))
	})

	It("offers no way to the client unless one is given", func() {
		Expect(showProblem(Problem{Title: "No", ClientHost: "app.example"}).Body.String()).
			NotTo(Or(ContainSubstring("<form"), ContainSubstring("<button")))
	})

	It("leads back to the client with one button that names the host", Label("B17"), func() {
		page := showProblem(withReturn()).Body.String()
		Expect(page).To(ContainSubstring(`<form method="post" action="` + action + `">`))
		Expect(page).To(ContainSubstring(`<input type="hidden" name="ticket" value="error-ticket">`))
		Expect(page).To(ContainSubstring(
			`<button type="submit" name="decision" value="return">Return to <bdi class="host" ` +
				`dir="ltr">client.example</bdi></button>`))
		Expect(strings.Count(page, "<button")).To(Equal(1))
	})

	It("leaves out what it does not know", func() {
		Expect(showProblem(Problem{Title: "No"}).Body.String()).NotTo(ContainSubstring("<dt>"))
	})
})
