package pages

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func showConnections(c Connections) *httptest.ResponseRecorder {
	GinkgoHelper()
	w := httptest.NewRecorder()
	Expect(english().WriteConnections(w, http.StatusOK, c)).To(Succeed())
	return w
}

// living is a page with an app of each kind.
func living() Connections {
	at := time.Date(2026, 1, 2, 12, 3, 4, 0, time.FixedZone("CET", 3600))
	app := func(grant, host string) Connection {
		return Connection{
			Grant:        grant,
			ClientName:   "App <" + grant + ">",
			ClientHost:   host,
			Permissions:  []Permission{{Text: "Read.", Scope: "read"}, {Text: "Write.", Scope: "write", Allowed: true}},
			CreatedAt:    at,
			EndsBy:       at.AddDate(0, 1, 0),
			EndsAtLatest: at.AddDate(0, 6, 0),
		}
	}
	local, mobile, web := app("g1", "client.example"), app("g2", "mobile.example"), app("g3", "web.example")
	local.Loopback, mobile.PrivateScheme, web.LastUsedAt, mobile.Waiting = true, true, at, true
	return Connections{
		Active: []Connection{local, mobile, web},
		Now:    at.Add(3 * time.Hour),
		Action: manage,
		Ticket: "sealed",
		All:    3,
		Page:   1,
		Pages:  1,
		Limit:  100,
	}
}

var _ = Describe("Showing a person's connections", func() {
	It("asks for the token first", func() {
		page := showConnections(Connections{Action: manage}).Body.String()
		Expect(page).To(ContainSubstring("<title>Your connections to cms.example</title>"))
		Expect(page).To(And(ContainSubstring(`<form method="post" action="`+manage+`">`),
			ContainSubstring(`name="bearer_token"`), ContainSubstring(`value="show"`)))
		Expect(page).NotTo(Or(ContainSubstring("ticket"), ContainSubstring("autofocus")))
	})

	It("tells each app's kind, times and powers, and ends each by a button of its own", func() {
		page := showConnections(living()).Body.String()
		Expect(page).To(And(ContainSubstring("A program on a computer"), ContainSubstring("An app on a device"),
			ContainSubstring("A service on the web")))
		Expect(page).To(And(ContainSubstring(`<time datetime="2026-01-02T11:03:04Z" `+
			`title="2026-01-02 11:03 UTC">3 hours ago</time>`),
			ContainSubstring("never")))
		Expect(strings.Count(page, "3 hours ago</time> (waits for the app)</dd>")).To(Equal(1))
		Expect(page).To(ContainSubstring("<q><bdi>App &lt;g1&gt;</bdi></q> <small>(unverified)</small></span> →"))
		for _, grant := range []string{"g1", "g2", "g3"} {
			Expect(page).To(ContainSubstring(`<input type="hidden" name="grant" value="` + grant + `">`))
		}
		Expect(strings.Count(page, `value="end"`)).To(Equal(3))
		Expect(strings.Count(page, `value="end_all"`)).To(Equal(1))
	})

	It("shows when a connection ends if it is unused, and when at the latest", Label("J18"), func() {
		const unused, latest = `<dt>Ends if unused</dt><dd><time datetime="2026-02-02T11:03:04Z"`,
			`<dt>Ends at the latest</dt><dd><time datetime="2026-07-02T11:03:04Z"`
		page := living()
		page.Active = page.Active[:1]
		Expect(showConnections(page).Body.String()).To(And(ContainSubstring(unused), ContainSubstring(latest)))
		page.Active[0].EndsAtLatest = page.Active[0].EndsBy
		Expect(showConnections(page).Body.String()).
			To(And(Not(ContainSubstring("Ends if unused")),
				ContainSubstring(`<dt>Ends at the latest</dt><dd><time datetime="2026-02-02T11:03:04Z"`)))
	})

	It("offers to end all only when there are several, and says when none is left", func() {
		few := living()
		few.Active, few.All = few.Active[:1], 1
		Expect(showConnections(few).Body.String()).NotTo(ContainSubstring("end_all"))
		few.Active, few.All, few.Done = nil, 0, "The connection has ended. The app’s next request is refused."
		Expect(showConnections(few).Body.String()).
			To(And(ContainSubstring("No app is connected with this token now."),
				ContainSubstring(`role="status">The connection has ended.`)))
	})

	DescribeTable("offers the previous and the next page", Label("J15"), func(page, pages int, offered ...int) {
		c := living()
		c.All, c.Page, c.Pages = 60, page, pages
		body := showConnections(c).Body.String()
		Expect(strings.Count(body, `"> <button type="submit" name="decision" value="page">`)).To(Equal(len(offered)))
		for _, other := range offered {
			Expect(body).To(ContainSubstring(`<input type="hidden" name="page" value="` + strconv.Itoa(other) +
				`"> <button type="submit" name="decision" value="page">`))
		}
		Expect(strings.Contains(body, "Page "+strconv.Itoa(page)+" of "+strconv.Itoa(pages))).To(Equal(pages > 1))
		Expect(strings.Contains(body, "Previous page")).To(Equal(page > 1))
		Expect(strings.Contains(body, "Next page")).To(Equal(page < pages))
	},
		Entry("of one", 1, 1), Entry("at the first", 1, 3, 2), Entry("in the middle", 2, 3, 1, 3),
		Entry("at the last", 3, 3, 2),
	)

	It("shows the limit, and what happens beyond it, when there are nearly as many connections",
		Label("J14", "J15"), func() {
			c := living()
			const notice = "You have 99 of at most 100 connections. Beyond that, the one unused for the " +
				"longest time ends."
			c.All = 99
			Expect(showConnections(c).Body.String()).NotTo(ContainSubstring("You have"))
			c.NearLimit = true
			Expect(showConnections(c).Body.String()).To(ContainSubstring(notice))
		})
})
