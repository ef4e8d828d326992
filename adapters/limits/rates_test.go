package limits

import (
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Limiting failures", Label("D31"), func() {
	It("makes an address wait after too many failures in a minute, and no other", func() {
		failures := NewFailures(3)
		for range 3 {
			Expect(failures.Failed("a", noon)).To(BeZero())
		}
		Expect(failures.Failed("a", noon.Add(5*time.Second))).To(Equal(15 * time.Second))
		Expect(failures.Failed("b", noon)).To(BeZero())
		Expect(failures.Failed("a", noon.Add(20*time.Second))).To(BeZero())
		Expect(failures.Failed("a", noon.Add(20*time.Second))).To(Equal(20 * time.Second))
	})

	It("starts again when the clock is set back", Label("I23"), func() {
		failures := NewFailures(1)
		Expect(failures.Failed("a", noon)).To(BeZero())
		Expect(failures.Failed("a", noon.Add(-oauth.MaxClockDifference))).NotTo(BeZero())
		Expect(failures.Failed("a", noon.AddDate(-4, 0, 0))).To(BeZero())
	})

	It("remembers a limited number of addresses", func() {
		rates := NewRates[int](time.Second, 1)
		for key := range maxKeys + 1 {
			Expect(rates.Take(key, noon)).To(BeZero())
		}
		Expect(rates.buckets.Len()).To(Equal(maxKeys))
	})
})

var _ = Describe("Limiting registrations", Label("L10"), func() {
	from := func(address string) oauth.Requester {
		return oauth.RequesterAt(netip.MustParseAddr(address), oauth.Limits{})
	}

	It("counts a refused registration nowhere", func() {
		registrations := NewRegistrations(oauth.Limits{
			MaxRegistrationsPerMinute: 3, MaxRegistrationsPerMinuteAndAddress: 2,
		})
		for range 2 {
			Expect(registrations.Admit(from("203.0.113.7"), noon)).To(BeZero())
		}
		for range 20 {
			Expect(registrations.Admit(from("203.0.113.7"), noon)).To(Equal(30 * time.Second))
		}
		Expect(registrations.Admit(from("198.51.100.1"), noon)).To(BeZero())
		Expect(registrations.Admit(from("198.51.100.2"), noon)).To(Equal(20 * time.Second))
		Expect(registrations.Admit(oauth.Requester{}, noon.Add(20*time.Second))).To(BeZero())
	})
})

var _ = Describe("Limiting calls", Label("G21"), func() {
	It("does not count the calls of a refused message", func() {
		calls := NewCalls()
		take := func(n int) time.Duration {
			return calls.Take(oauth.CallQuota{Key: "ada", Calls: n, PerMinute: 6}, noon)
		}
		Expect(take(6)).To(BeZero())
		for range 20 {
			Expect(take(1)).To(Equal(10 * time.Second))
		}
		Expect(take(7)).To(Equal(70*time.Second), "more than the quota")
	})
})

var _ = Describe("Limiting fetches", Label("C21"), func() {
	const host = "client.example"
	// spent takes fetches until one is refused, and returns their number.
	spent := func(fetches Fetches, from func(i int) string, host string) (taken int) {
		for taken < 100 && fetches.Take(requesterAt(from(taken)), host, noon) == 0 {
			taken++
		}
		return taken
	}
	always := func(address string) func(int) string { return func(int) string { return address } }

	It("allows a network 30 in a minute from all hosts, and takes none from others", func() {
		fetches := NewFetches()
		Expect(spent(fetches, func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }, host)).To(Equal(30))
		Expect(fetches.Take(requesterAt("203.0.113.1"), "other.example", noon)).To(Equal(2 * time.Second))
		Expect(spent(fetches, always("198.51.100.1"), host)).To(Equal(30), "refused ones do not count for the host")
		Expect(fetches.Take(requesterAt("203.0.113.1"), "other.example", noon.Add(2*time.Second))).To(BeZero())
	})

	It("counts a /56 as one network, and the one beside it as another", func() {
		fetches := NewFetches()
		Expect(spent(fetches, func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }, host)).To(Equal(30))
		Expect(fetches.Take(requesterAt("2001:db8:0:100::1"), host, noon)).To(BeZero())
	})

	It("allows 60 in a minute from a host to all networks, also to those without limits", func() {
		fetches := NewFetches()
		Expect(spent(fetches, always(""), host)).To(Equal(60))
		Expect(fetches.Take(requesterAt("203.0.113.1"), host, noon)).To(Equal(time.Second))
		Expect(fetches.Take(requesterAt("203.0.113.1"), "other.example", noon)).To(BeZero())
	})
})

// requesterAt returns the requester at an address, one without limits for "".
func requesterAt(address string) oauth.Requester {
	parsed, _ := netip.ParseAddr(address)
	return oauth.RequesterAt(parsed, oauth.Limits{})
}
