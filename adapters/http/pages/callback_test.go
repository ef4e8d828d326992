package pages

import (
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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
		Entry("of five minutes, a moment later", 5*time.Minute-time.Millisecond,
			"It works once, for 5 minutes from now, until "),
		Entry("of almost three minutes", 3*time.Minute-2*time.Second, "It works once, for 2 minutes from now, until "),
		Entry("of less than two minutes", 2*time.Minute-2*time.Second, "It works once, until "),
		Entry("of ten seconds", 10*time.Second, "It works once, until "),
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
