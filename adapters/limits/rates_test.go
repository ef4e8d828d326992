package limits

import (
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
