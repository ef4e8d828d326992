package features_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/quota"
)

// askAs sends the client's request to a replica with another client_id.
func (c *Client) askAs(ctx context.Context, replica, id, address string) Response {
	GinkgoHelper()
	query := c.Request()
	query.Set("client_id", id)
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, replica+"/oauth/authorize?"+query.Encode(), http.NoBody))
	forwarded(address)(r)
	return Send(r)
}

var _ = Describe("Connecting while an attacker causes fetches", Label("CIMD", "limits"), func() {
	const person = "198.51.100.7"
	world := EachWorld(behind("127.0.0.0/8"))
	client := world.EachClient()
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

func (w *World) handle(method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewBufferString(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.service.Echo.ServeHTTP(answer, r)
	return answer
}

// registered is the beginning of the digest of a client_id.
type registered [16]byte

// registerAndOpen registers a client, and returns the zero value unless its id opens.
func (w *World) registerAndOpen() (digest registered) {
	w.Clock.Advance(time.Minute / quota.RegistrationsPerMinute)
	answer := w.handle(http.MethodPost, w.Issuer+"/oauth/register",
		`{"client_name":"An app","redirect_uris":["http://127.0.0.1/callback"]}`)
	var members struct {
		ID string `json:"client_id"`
	}
	if answer.Code != http.StatusCreated || json.Unmarshal(answer.Body.Bytes(), &members) != nil {
		return registered{}
	}
	if document := w.handle(http.MethodGet, members.ID, ""); document.Code != http.StatusOK ||
		!bytes.Contains(document.Body.Bytes(), []byte(members.ID)) {
		return registered{}
	}
	sum := sha256.Sum256([]byte(members.ID))
	return registered(sum[:])
}

// registerAll fills in the digests of as many clients, in several goroutines.
func (w *World) registerAll(into []registered) {
	var workers errgroup.Group
	for part := range slices.Chunk(into, max(1, len(into)/8)) {
		workers.Go(func() error {
			for i := range part {
				part[i] = w.registerAndOpen()
			}
			return nil
		})
	}
	_ = workers.Wait() // no worker fails
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one empties the pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

var _ = Describe("Flooding the server with registrations", Label("L10"), func() {
	body := map[string]any{"redirect_uris": []string{"https://app.example/callback"}}

	DescribeTable("writes no row and does not increase the server's memory use", Label("L1"), func(ctx SpecContext,
		early, all int) {
		world := Operate(selfRegistration, func(config *service.Config) {
			config.Logger = slog.New(slog.DiscardHandler)
			config.Limits.UnlimitedNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // of httptest
		})
		world.RegisterClient(ctx, "http://127.0.0.1:4321/callback").Connect(ctx)
		world.Newest(ctx, "authorize client_metadata page token_judged code_issued exchange")
		ids := make([]registered, all-1)
		rows, _ := world.CheckStore(ctx)

		world.registerAll(ids[:early])
		before := heap()
		world.registerAll(ids[early:])
		Expect(heap() - before).To(BeNumerically("<", 4<<20))

		Expect(ids).NotTo(ContainElement(registered{}), "each id opens")
		slices.SortFunc(ids, func(a, b registered) int { return bytes.Compare(a[:], b[:]) })
		Expect(slices.Compact(slices.Clone(ids))).To(HaveLen(len(ids)), "no two ids are equal")
		after, _ := world.CheckStore(ctx)
		Expect(after).To(Equal(rows))
	}, Entry("of 2,000 clients", Label("long"), 500, 2_000, SpecTimeout(8*time.Minute)),
		Entry("of 1,000,000 clients", 50_000, 1_000_000, Label("soak", "flood"), SpecTimeout(35*time.Minute)))

	It("is limited for each address, and for the networks around it", func(ctx SpecContext) {
		world := Operate(selfRegistration, behind("127.0.0.1/32"))
		world.Clock.Stop()
		register := func(ctx context.Context, address string) int {
			return world.Register(ctx, body, forwarded(address)).StatusCode
		}
		for range quota.AddressRegistrationsPerMinute {
			Expect(register(ctx, "203.0.113.7")).To(Equal(http.StatusCreated))
		}
		refused := world.Register(ctx, body, forwarded("203.0.113.7"))
		Expect(refused.StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(refused.Header.Get("Retry-After")).To(Equal("2"))
		Expect(decode(refused)["error"]).To(Equal("temporarily_unavailable"))
		for _, address := range []string{"203.0.113.8", "203.0.113.9", "203.0.113.10", "203.0.113.11"} {
			for range quota.AddressRegistrationsPerMinute {
				Expect(register(ctx, address)).To(Equal(http.StatusCreated))
			}
		}
		Expect(register(ctx, "203.0.113.12")).To(Equal(http.StatusTooManyRequests), "the /24 has registered 150")
		Expect(register(ctx, "198.51.100.1")).To(Equal(http.StatusCreated))
		Expect(world.AskAdmin(ctx, "/metrics").Text).
			To(ContainSubstring(`pasteport_limits_total{effect="refused",limit="registrations"} 2`))
		world.Clock.Advance(time.Minute)
		Expect(register(ctx, "203.0.113.7")).To(Equal(http.StatusCreated))
		Expect(Run(ctx, append([]string{"connections", "--json"}, world.Kept()...)...).Out).To(MatchJSON("[]"))
	})
})
