package cimd

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Counting the fetches of a minute", Label("C21"), func() {
	var counted *rates
	var clock *handClock
	BeforeEach(func() { counted, clock = newRates(oauth.DefaultLimits()), newClock() })

	from := func(address, url string) target {
		return target{at: oauth.RestoreClientID(url), requester: requesterAt(address)}
	}
	fetch := func(t target) error {
		err := counted.admits(t, clock.now())
		if err == nil {
			counted.spend(t, clock.now())
		}
		return err
	}
	// spent fetches from addresses in turn until one is refused, and returns how many were not.
	spent := func(url string, address func(i int) string) int {
		for i := range 10_000 {
			if fetch(from(address(i), url)) != nil {
				return i
			}
		}
		return 0
	}
	inOneNetwork := func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }

	It("refuses an address after 30 fetches, until the minute is over, and no other address", func() {
		for i := range 30 {
			Expect(fetch(from("203.0.113.7", fmt.Sprintf("https://%d.example/", i)))).To(Succeed())
		}
		Expect(fetch(from("203.0.113.7", "https://more.example/"))).To(MatchError(oauth.ErrMetadataBudget))
		Expect(fetch(from("203.0.113.8", "https://more.example/"))).To(Succeed())
		clock.advance(time.Minute - time.Nanosecond)
		Expect(fetch(from("203.0.113.7", "https://more.example/"))).To(MatchError(oauth.ErrMetadataBudget))
		clock.advance(time.Nanosecond)
		Expect(fetch(from("203.0.113.7", "https://more.example/"))).To(Succeed())
	})

	It("refuses a network after 60 from a domain, and no other network", func() {
		Expect(spent("https://a.client.example/", inOneNetwork)).To(Equal(60))
		Expect(fetch(from(inOneNetwork(99), "https://CLIENT.example:443/x"))).To(MatchError(oauth.ErrMetadataBudget))
		Expect(fetch(from(inOneNetwork(99), "https://another.example/"))).To(Succeed())
		for range 30 {
			Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
		}
		clock.advance(time.Minute)
		Expect(fetch(from(inOneNetwork(99), "https://client.example/"))).To(Succeed())
	})

	It("guarantees each network three, even beside a thousand others", func() {
		Expect(spent("https://client.example/", func(i int) string { return fmt.Sprintf("203.%d.%d.7", i%1000/250, i%1000%250) })).To(Equal(3000))
		for range guaranteed {
			Expect(fetch(from("198.51.100.1", "https://client.example/"))).To(Succeed())
		}
		Expect(fetch(from("198.51.100.1", "https://client.example/"))).To(MatchError(oauth.ErrMetadataBudget))
	})

	It("counts requesters without limits as one network", func() {
		Expect(spent("https://client.example/", func(int) string { return "" })).To(Equal(60))
		Expect(fetch(from("", "https://another.example/"))).To(Succeed())
	})

	It("neither counts nor refuses known documents", Label("C55"), func() {
		known := from("203.0.113.7", "https://client.example/")
		known.known = true
		for range 100 {
			Expect(fetch(known)).To(Succeed())
		}
		Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
	})

	It("begins anew when the clock is set back", Label("I23"), func() {
		for range 30 {
			Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
		}
		clock.advance(-time.Nanosecond)
		Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
	})
})
