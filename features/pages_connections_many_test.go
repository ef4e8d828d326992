package features_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// GoTo opens another page of the connections.
func (p Page) GoTo(ctx context.Context, page string) Page {
	GinkgoHelper()
	return ReadPage(
		Post(ctx, p.Action, url.Values{"decision": {"page"}, "ticket": {p.Hidden.Get("ticket")}, "page": {page}}))
}

var _ = Describe("Paging through one's connections", Label("J15", "stores"), func() {
	const connected = 27
	var world *World
	var client *Client
	var codes []string
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld(atMostGrants(30))
		client = world.NewClient()
		codes = nil
		for range connected {
			world.Clock.Advance(10 * time.Millisecond)
			codes = append(codes, client.Authorize(ctx))
		}
	})

	It("shows 25 connections at a time, the last used first, and each one once", func(ctx SpecContext) {
		world.Clock.Advance(time.Minute / 2)
		oldest := client.Token(ctx, client.Exchange(codes[0])).Tokens()
		Expect(world.Call(ctx, oldest.Access).StatusCode).To(Equal(http.StatusOK))
		first := world.Connections(ctx, world.Token)
		second := first.GoTo(ctx, "2")
		Expect(first.grants()).To(HaveLen(25))
		Expect(second.grants()).To(HaveLen(connected - 25))
		Expect(append(first.grants(), second.grants()...)).To(HaveEach(Not(BeEmpty())))
		all := map[string]bool{}
		for _, grant := range append(first.grants(), second.grants()...) {
			all[grant] = true
		}
		Expect(all).To(HaveLen(connected))
		listed := world.Grants(ctx)
		Expect(first.grants()[0]).To(Equal(listed[0].ID), "it was used last")
		Expect(first.grants()[1]).To(Equal(listed[connected-1].ID), "it was connected last")
		Expect(first.Text).
			To(And(ContainSubstring("Page 1 of 2"), ContainSubstring("Next page"),
				Not(ContainSubstring("Previous page"))))
		Expect(second.Text).
			To(And(ContainSubstring("Page 2 of 2"), ContainSubstring("Previous page"),
				Not(ContainSubstring("Next page"))))
		Expect(second.GoTo(ctx, "1").grants()).To(Equal(first.grants()))
	})

	It("stays on the page after one of its connections has ended, and shows the previous page when it is empty",
		func(ctx SpecContext) {
			page := world.Connections(ctx, world.Token).GoTo(ctx, "2")
			end := func(page Page) Page {
				form := url.Values{
					"decision": {"end"},
					"ticket":   {page.Hidden.Get("ticket")},
					"page":     {"2"},
					"grant":    {page.grants()[0]},
				}
				return ReadPage(Post(ctx, page.Action, form))
			}
			Expect(page.Text).
				To(MatchRegexp(`name="grant" value="` + regexp.QuoteMeta(page.grants()[0]) +
					`"> ?<input type="hidden" name="page" value="2">`))
			left := end(page)
			Expect(left.grants()).To(Equal(page.grants()[1:]))
			Expect(end(left).grants()).To(HaveLen(25))
		})

	It("ends all connections with one button on any page", Label("I12"), func(ctx SpecContext) {
		Expect(world.Connections(ctx, world.Token).GoTo(ctx, "2").End(ctx, "").Text).
			To(ContainSubstring("27 connections have ended."))
		Expect(world.Grants(ctx)).To(BeEmpty())
	})

	DescribeTable("shows an existing page for", func(ctx SpecContext, asked string, shown int) {
		Expect(world.Connections(ctx, world.Token).GoTo(ctx, asked).Text).
			To(ContainSubstring("Page " + strconv.Itoa(shown) + " of 2"))
	},
		Entry("a number that is too high", "99", 2), 
		Entry("a word", "x", 1),
		Entry("a number beyond 64 bits", "99999999999999999999", 2),
	)

	It("asks for the token again when the page is out of date, and refuses a forged ticket",
		Label("B4"), func(ctx SpecContext) {
			page := world.Connections(ctx, world.Token)
			world.Clock.Advance(10 * time.Minute)
			late := page.GoTo(ctx, "2")
			Expect(late.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(late.Text).To(ContainSubstring("This page is out of date."))
			page.Hidden.Set("ticket", "AAAA")
			Expect(page.GoTo(ctx, "2").StatusCode).To(Equal(http.StatusBadRequest))
		})

	It("shows the limit when nine tenths of it are used", Label("J14"), func(ctx SpecContext) {
		page := world.Connections(ctx, world.Token)
		Expect(page.Text).
			To(ContainSubstring("You have 27 of at most 30 connections. Beyond that, the one unused for the longest " +
				"time ends."))
		Expect(page.End(ctx, page.grants()[0]).Text).NotTo(ContainSubstring("You have"))
	})
})
