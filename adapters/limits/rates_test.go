package limits

import (
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Limiting unknown tokens", Label("D31"), func() {
	It("starts again when the clock is set back", Label("I23"), func() {
		limit, one := NewRates(), oauth.Rate{Of: "a", Events: 1, PerMinute: 1}
		Expect(limit.Take(noon, one)).To(BeZero())
		Expect(limit.Take(noon.Add(-oauth.MaxClockDifference), one)).NotTo(BeZero())
		Expect(limit.Take(noon.AddDate(-4, 0, 0), one)).To(BeZero())
	})

	It("remembers a limited number of addresses", func() {
		limit := NewRates()
		for key := range maxKeys + 1 {
			Expect(limit.Take(noon, oauth.Rate{Of: fmt.Sprint(key), Events: 1, PerMinute: 1})).To(BeZero())
		}
		Expect(limit.buckets.Len()).To(Equal(maxKeys))
	})
})

var _ = Describe("Limiting registrations", Label("L10"), func() {
	It("counts a refused registration nowhere", func() {
		limit, address := NewRates(), requesterAt("203.0.113.7")
		for range oauth.AddressRegistrationsPerMinute {
			Expect(limit.Take(noon, address.Registration()...)).To(BeZero())
		}
		for range oauth.RegistrationsPerMinute {
			Expect(limit.Take(noon, address.Registration()...)).To(Equal(2 * time.Second))
		}
		for range oauth.RegistrationsPerMinute - oauth.AddressRegistrationsPerMinute {
			Expect(limit.Take(noon, oauth.Requester{}.Registration()...)).To(BeZero())
		}
		Expect(limit.Take(noon, requesterAt("198.51.100.1").Registration()...)).To(Equal(10 * time.Millisecond))
	})
})

var _ = Describe("Limiting calls", Label("G21"), func() {
	It("does not count the calls of a refused message", func() {
		calls := NewRates()
		take := func(n int) time.Duration {
			return calls.Take(noon, oauth.Rate{Of: "ada", Events: n, PerMinute: 6})
		}
		Expect(take(6)).To(BeZero())
		for range 20 {
			Expect(take(1)).To(Equal(10 * time.Second))
		}
		Expect(take(7)).To(Equal(70*time.Second), "more than the quota")
	})
})

var _ = Describe("Limiting fetches", Label("C21"), func() {
	const host, other = "client.example", "other.example"
	var fetches *Rates
	BeforeEach(func() { fetches = NewRates() })
	wait := func(address, host string) time.Duration {
		return fetches.Take(noon, requesterAt(address).Fetch(host)...)
	}
	// spent takes fetches until one is refused, and returns their number.
	spent := func(from func(i int) string, host string) (taken int) {
		for taken < 100 && wait(from(taken), host) == 0 {
			taken++
		}
		return taken
	}
	always := func(address string) func(int) string { return func(int) string { return address } }

	It("allows a network 30 in a minute from all hosts, and takes none from others", func() {
		Expect(spent(func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }, host)).To(Equal(30))
		Expect(wait("203.0.113.1", other)).To(Equal(2 * time.Second))
		Expect(spent(always("198.51.100.1"), host)).To(Equal(30), "refused ones do not count for the host")
		Expect(fetches.Take(noon.Add(2*time.Second), requesterAt("203.0.113.1").Fetch(other)...)).To(BeZero())
	})

	It("counts a /56 as one network, and the one beside it as another", func() {
		Expect(spent(func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }, host)).To(Equal(30))
		Expect(wait("2001:db8:0:100::1", host)).To(BeZero())
	})

	It("allows 60 in a minute from a host to all networks, also to those without limits", func() {
		Expect(spent(always(""), host)).To(Equal(60))
		Expect(wait("203.0.113.1", host)).To(Equal(time.Second))
		Expect(wait("203.0.113.1", other)).To(BeZero())
	})

	It("counts no fetch for a network that the limit of the host refuses", func() {
		Expect(spent(always(""), host)).To(Equal(60))
		for range 100 {
			Expect(wait("203.0.113.1", host)).To(Equal(time.Second))
		}
		Expect(spent(always("203.0.113.1"), other)).To(Equal(30))
	})
})

// requesterAt returns the requester at an address, one without limits for "".
func requesterAt(address string) oauth.Requester {
	parsed, _ := netip.ParseAddr(address)
	return oauth.RequesterAt(parsed, oauth.Limits{})
}
