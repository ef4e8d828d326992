package features_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// askAs sends the client's request to a replica with another client_id.
func (c *Client) askAs(ctx context.Context, replica, id, address string) Response {
	GinkgoHelper()
	query := c.Request()
	query.Set("client_id", id)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, replica+"/oauth/authorize?"+query.Encode(), http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	forwarded(address)(r)
	return Send(r)
}

var _ = Describe("Connecting while an attacker causes fetches", Label("CIMD", "limits"), func() {
	const person = "198.51.100.7"
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(behind("127.0.0.0/8"))
		client = world.NewClient()
	})
	ask := func(ctx context.Context, from, id string) Response {
		GinkgoHelper()
		return client.askAs(ctx, world.Issuer, id, from)
	}
	lookUp := func(ctx context.Context, from, id string) int { return ask(ctx, from, id).StatusCode }
	// attack looks up made-up documents from the addresses until one lookup is refused.
	attack := func(ctx context.Context, address func(i int) string) {
		GinkgoHelper()
		for i := range 100 {
			if lookUp(ctx, address(i), world.Clients.URL(fmt.Sprint("/made-up-", i))) == http.StatusServiceUnavailable {
				return
			}
		}
		Fail("the attacker is never refused")
	}

	It("succeeds with a known client while an attacker makes the server fetch from slow hosts",
		Label("long", "C52", "C57"), func(ctx SpecContext) {
			Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
			world.Clock.Advance(inTheMeantime)
			var slow []*ClientSite
			var attackers sync.WaitGroup
			attacking, end := context.WithCancel(ctx)
			defer attackers.Wait()
			defer end()
			for i := range 4 {
				site := NewClientSite()
				slow = append(slow, site)
				for n := range 10 {
					path := fmt.Sprint("/", n)
					site.Serve(path, func(_ http.ResponseWriter, r *http.Request) {
						select {
						case <-r.Context().Done():
						case <-attacking.Done():
						}
					})
					attackers.Go(func() {
						query := url.Values{"client_id": {site.URL(path)}}
						r, _ := http.NewRequestWithContext(attacking, http.MethodGet,
							world.Issuer+"/oauth/authorize?"+query.Encode(), nil)
						forwarded(fmt.Sprintf("203.0.%d.7", i))(r)
						if answer, err := noRedirects.Do(r); err == nil {
							_ = answer.Body.Close()
						}
					})
				}
			}
			Eventually(func() (fetches int64) {
				for _, site := range slow {
					fetches += site.Fetches()
				}
				return fetches
			}).WithTimeout(patience).Should(BeNumerically(">=", 16))
			Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
		})

	DescribeTable("is possible for a new client of a host, while made-up documents of the host are looked up from",
		Label("C21"),
		func(ctx SpecContext, address func(i int) string) {
			attack(ctx, address)
			Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
		},
		Entry("a /24", func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }),
		Entry("a /56", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }),
	)

	It("is refused for a new client from the attacker's network, until its fetches of a minute return",
		Label("C21", "C45"), func(ctx SpecContext) {
			world.Clock.Stop()
			site := NewClientSite()
			for i := range 31 {
				_ = lookUp(ctx, person, site.URL(fmt.Sprint("/made-up-", i)))
			}
			Expect(site.Fetches()).To(BeEquivalentTo(30))
			refused := ask(ctx, person, client.ID)
			Expect(refused).To(BeASafePage(http.StatusServiceUnavailable, "temporarily_unavailable"))
			Expect(refused.Header.Get("Retry-After")).To(Equal("2"))
			world.Clock.Advance(2 * time.Second)
			Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
		})

	It("is possible with a known client from the attacker's address", Label("C55"), func(ctx SpecContext) {
		Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
		attack(ctx, func(int) string { return person })
		world.Clock.Advance(inTheMeantime)
		attack(ctx, func(int) string { return person })
		before := world.Clients.Fetches()
		Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
		Expect(world.Clients.Fetches()).To(Equal(before + 1))
	})

	It("is possible with a client that has grants, also after a restart", Label("C57", "C58"), func(ctx SpecContext) {
		client.Connect(ctx)
		world.Restart()
		attack(ctx, func(int) string { return person })
		Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
		Expect(lookUp(ctx, person, world.NewClient().ID)).To(Equal(http.StatusServiceUnavailable))
	})

	It("is possible with a client in use after 1,100 other documents, even if its host is down",
		Label("long", "C54", "C58"), func(ctx SpecContext) {
			client.Connect(ctx)
			unused := world.NewClient()
			Expect(lookUp(ctx, "203.255.0.7", unused.ID)).To(Equal(http.StatusOK))
			for i := range 1100 {
				path := fmt.Sprint("/other-", i)
				id := world.Clients.URL(path)
				world.Clients.Publish(path,
					fmt.Sprintf(`{"client_id":%q,"client_name":"Other","redirect_uris":[%q]}`, id, client.Redirect))
				Expect(lookUp(ctx, fmt.Sprintf("203.%d.%d.7", i/250, i%250), id)).To(Equal(http.StatusOK))
				world.Clock.Advance(time.Second) // one more fetch from the host
			}
			world.Clients.Down()
			Expect(lookUp(ctx, person, client.ID)).To(Equal(http.StatusOK))
			Expect(lookUp(ctx, person, unused.ID)).To(Equal(http.StatusBadGateway))
		})
})

var _ = Describe("Refreshing while the host of the client's keys is down", Label("CIMD", "C56", "D33"), func() {
	It("works for an hour after they have expired", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewSigningClient("ES256")
		tokens := client.Connect(ctx)
		refresh := func() Response { return client.Token(ctx, client.Sign(client.Refresh(tokens.Refresh))) }
		up := world.Clients.Down()
		for _, later := range []time.Duration{inTheMeantime, 30 * time.Minute, 29 * time.Minute} {
			world.Clock.Advance(later)
			answer := refresh()
			Expect(answer.StatusCode).To(Equal(http.StatusOK))
			tokens = answer.Tokens()
		}
		world.Clock.Advance(time.Minute)
		Expect(refresh()).To(BeRefusedAs(503, "temporarily_unavailable"))
		up()
		Expect(refresh().StatusCode).To(Equal(http.StatusOK))
	})
})
