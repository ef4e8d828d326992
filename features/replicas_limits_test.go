package features_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// sharingLimits counts in the store, as services on a database server do by default.
func sharingLimits(config *service.Config) {
	config.More = append(config.More, bootstrap.WithSharedLimits())
}

var _ = Describe("Limits shared by replicas", Label("I22"), func() {
	var world *World
	var replica *Replica
	var client *Client
	BeforeEach(func() {
		world = NewWorld(sharingLimits, easyProofs, behind("127.0.0.0/8"))
		replica, client = world.Replica(), world.NewClient()
	})
	// paste submits the first replica's form to one of the replicas.
	paste := func(ctx context.Context, at, token string) Response {
		GinkgoHelper()
		page := client.Consent(ctx)
		form := url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"}, "bearer_token": {token}}
		return Post(ctx, strings.Replace(page.Action, world.Issuer, at, 1), form)
	}
	both := func() []string { return []string{world.Issuer, replica.Address} }

	It("counts wrong tokens of all replicas together, and no right ones", Label("B6", "N5"), func(ctx SpecContext) {
		for i := range 5 {
			Expect(paste(ctx, both()[i%2], world.TokenFor(ctx, "ada", demosite.Author)).StatusCode).
				To(Equal(http.StatusSeeOther))
			Expect(paste(ctx, both()[i%2], "demo_wrong"+rand.Text()).StatusCode).To(Equal(http.StatusForbidden))
		}
		for _, at := range both() {
			for _, token := range []string{"demo_wrong" + rand.Text(), world.TokenFor(ctx, "ada", demosite.Author)} {
				ReadDemand(paste(ctx, at, token))
			}
		}
		world.Clock.Advance(5 * time.Minute)
		Expect(paste(ctx, replica.Address, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("accepts at one replica the proof of work that another has demanded", Label("B18"), func(ctx SpecContext) {
		for range 5 {
			paste(ctx, world.Issuer, "demo_wrong"+rand.Text())
		}
		demand := ReadDemand(paste(ctx, world.Issuer, world.Token))
		demand.Action = strings.Replace(demand.Action, world.Issuer, replica.Address, 1)
		Expect(demand.Send(ctx, demand.Solve()).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("counts wrong tokens of the connections page together with those of the consent page",
		Label("B6"), func(ctx SpecContext) {
			for i := range 5 {
				form := url.Values{"decision": {"show"}, "bearer_token": {"demo_wrong" + rand.Text()}}
				Expect(Post(ctx, both()[i%2]+"/oauth/connections", form).StatusCode).To(Equal(http.StatusOK))
			}
			ReadDemand(paste(ctx, replica.Address, "demo_wrong"+rand.Text()))
		})

	It("limits fetches per replica", Label("C21"), func(ctx SpecContext) {
		world.Clock.Stop()
		look := func(at string, n int) int {
			GinkgoHelper()
			return client.askAs(ctx, at, world.Clients.URL("/made-up-"+strconv.Itoa(n)), office).StatusCode
		}
		for _, at := range both() {
			for i := range 30 {
				Expect(look(at, i)).To(Equal(http.StatusBadGateway))
			}
			Expect(look(at, 30)).To(Equal(http.StatusServiceUnavailable))
		}
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(60))
	})

	It("refuses tokens while they cannot be counted, but still fetches documents",
		Label("B6", "C21", "D30", "N14"), func(ctx SpecContext) {
			stranger := world.NewClient()
			page := client.Consent(ctx)
			back := world.Hide("oauth.db", "oauth.db-wal", "oauth.db-shm")
			answer := page.Approve(ctx, "demo_wrong")
			Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
			Expect(answer.Text).NotTo(ContainSubstring("does not know that token"))
			Expect(world.Connections(ctx, "demo_wrong").StatusCode).To(Equal(http.StatusServiceUnavailable))
			Expect(stranger.AskFor(ctx, stranger.Request()).StatusCode).To(Equal(http.StatusOK))
			Expect(client.AskFor(ctx, client.Request()).StatusCode).To(Equal(http.StatusOK))
			back()
			Expect(page.Approve(ctx, "demo_wrong").StatusCode).To(Equal(http.StatusForbidden))
			Expect(stranger.AskFor(ctx, stranger.Request()).StatusCode).To(Equal(http.StatusOK))
		})

	It("keeps no address in the database", Label("H3"), func(ctx SpecContext) {
		Expect(paste(ctx, world.Issuer, "demo_wrong").StatusCode).To(Equal(http.StatusForbidden))
		counters := world.Rows(ctx)["counters"]
		Expect(counters).NotTo(BeEmpty())
		Expect(strings.Join(counters, "\n")).NotTo(ContainSubstring("127.0.0.1"))
	})
})
