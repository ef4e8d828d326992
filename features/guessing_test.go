package features_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Guessing host tokens", Label("B6", "N5"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})
	wrong := func(ctx context.Context, page Page, header http.Header) Response {
		GinkgoHelper()
		form := url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"}, "bearer_token": {"demo_wrong"}}
		return Post(ctx, page.Action, form, func(r *http.Request) {
			for name, values := range header {
				r.Header[name] = values
			}
		})
	}

	It("stops after five wrong tokens from one address, whatever X-Forwarded-For says", func(ctx SpecContext) {
		for range 5 {
			Expect(wrong(ctx, client.Consent(ctx), http.Header{"X-Forwarded-For": {"203.0.113.7"}}).StatusCode).To(Equal(http.StatusForbidden))
		}
		page := client.Consent(ctx)
		answer := wrong(ctx, page, http.Header{"X-Forwarded-For": {"203.0.113.8"}})
		Expect(answer.StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(answer.Header.Get("Retry-After")).To(MatchRegexp(`^(2\d\d|300)$`))
		Expect(answer.Text).To(ContainSubstring("Too many tokens were tried from here."))
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(page.Deny(ctx).StatusCode).To(Equal(http.StatusSeeOther))

		world.Clock.Advance(5 * time.Minute)
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("lets other addresses go on", func(ctx SpecContext) {
		for range 6 {
			wrong(ctx, client.Consent(ctx), nil)
		}
		page := client.Consent(ctx)
		neighbour := &http.Client{Timeout: 10 * time.Second, CheckRedirect: noRedirects.CheckRedirect, Transport: &http.Transport{
			DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
		answer, err := neighbour.PostForm(page.Action, url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"}, "bearer_token": {world.Token}})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("counts guesses that come at the same moment", func(ctx SpecContext) {
		pages := make(chan Page, 20)
		for range cap(pages) {
			pages <- client.Consent(ctx)
		}
		answers := atOnce(cap(pages), func() Response { return wrong(ctx, <-pages, nil) })
		forbidden := 0
		for _, answer := range answers {
			if answer.StatusCode == http.StatusForbidden {
				forbidden++
			}
		}
		Expect(forbidden).To(Equal(5))
	})

	It("counts nothing that is no wrong token", Label("B5", "B7"), func(ctx SpecContext) {
		for range 6 {
			page := client.Consent(ctx)
			Expect(page.Approve(ctx, " ").StatusCode).To(Equal(http.StatusBadRequest))
			Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
		}
	})
})
