package limits

import (
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Counting the fetches of a minute", Label("C21"), func() {
	var counted *fetchRates
	var now time.Time
	BeforeEach(func() { counted, now = newFetchRates(oauth.DefaultLimits()), noon })

	from := func(address, url string) oauth.Fetch {
		return oauth.Fetch{At: oauth.RestoreClientID(url), By: requesterAt(address)}
	}
	fetch := func(f oauth.Fetch) error {
		err := counted.admits(f, now)
		if err == nil {
			counted.count(f, now)
		}
		return err
	}
	// spent fetches from the addresses in turn until one is refused, and returns the number of
	// fetches.
	spent := func(url string, address func(i int) string) int {
		for i := range 10_000 {
			if fetch(from(address(i), url)) != nil {
				return i
			}
		}
		return 0
	}
	inOneNetwork := func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }

	It("refuses an address after 30 fetches, and no other address", func() {
		Expect(spent("https://client.example/", func(int) string { return "203.0.113.7" })).To(Equal(30))
		Expect(fetch(from("203.0.113.8", "https://client.example/"))).To(Succeed())
		now = now.Add(time.Minute)
		Expect(spent("https://client.example/", func(int) string { return "203.0.113.7" })).To(Equal(30))
	})

	It("guarantees an address without fetches three from each other domain", func() {
		Expect(spent("https://attacker.example/", func(int) string { return "203.0.113.7" })).To(Equal(30))
		for i := range 20 {
			for range guaranteed {
				Expect(fetch(from("203.0.113.7", fmt.Sprintf("https://app.client%d.example/", i)))).To(Succeed())
			}
			Expect(fetch(from("203.0.113.7", fmt.Sprintf("https://other.client%d.example/", i)))).
				To(MatchError(oauth.ErrMetadataBudget))
		}
		Expect(counted.addressesAtDomain.buckets.Len()).To(Equal(21))
	})

	It("keeps a limited number of addresses of a domain", func() {
		for i := range maxKeys + 1 {
			Expect(fetch(from("203.0.113.7", fmt.Sprintf("https://client%d.example/", i)))).To(Succeed())
		}
		Expect(counted.addressesAtDomain.buckets.Len()).To(Equal(maxKeys))
	})

	wait := func(f oauth.Fetch) time.Duration { return oauth.WaitOf(counted.admits(f, now)) }

	It("returns when the next fetch of a refused address is possible", func() {
		attacked := from("203.0.113.7", "https://client.example/")
		Expect(spent("https://client.example/", func(int) string { return "203.0.113.7" })).To(Equal(30))
		Expect(wait(attacked)).To(Equal(2 * time.Second)) // 30 a minute
		now = now.Add(2 * time.Second)
		Expect(fetch(attacked)).To(Succeed())
	})

	It("returns when the next fetch of a network from an exhausted domain is possible", func() {
		Expect(spent("https://client.example/", inOneNetwork)).To(Equal(60))
		Expect(wait(from(inOneNetwork(99), "https://client.example/"))).To(Equal(time.Second)) // 60 a minute
		now = now.Add(time.Second)
		Expect(fetch(from(inOneNetwork(99), "https://client.example/"))).To(Succeed())
	})

	DescribeTable("returns the longer of two waits, with its reason",
		func(ofAddress, ofDomain int, expected time.Duration, reason string) {
			counted = newFetchRates(oauth.Limits{
				MaxFetchesPerMinuteAndAddress: ofAddress,
				MaxFetchesPerMinuteAndDomain:  ofDomain,
			})
			at := from("203.0.113.7", "https://client.example/")
			for range max(ofAddress, ofDomain) {
				counted.count(at, now)
			}
			Expect(wait(at)).To(Equal(expected))
			Expect(counted.admits(at, now)).To(MatchError(ContainSubstring(reason)))
		},
		Entry("of the domain", 12, 6, 10*time.Second, "from one domain"),
		Entry("of the address", 6, 12, 10*time.Second, "for one address"),
	)

	It("guarantees each network three, even with a thousand others", func() {
		Expect(spent("https://client.example/", func(i int) string {
			return fmt.Sprintf("203.%d.%d.7", i%1000/250, i%1000%250)
		})).To(Equal(3000))
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
		known.Known = true
		for range 100 {
			Expect(fetch(known)).To(Succeed())
		}
		Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
	})

	It("starts again when the clock is set back", Label("I23"), func() {
		for range 30 {
			Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
		}
		now = now.Add(-time.Hour)
		Expect(fetch(from("203.0.113.7", "https://client.example/"))).To(Succeed())
	})
})

// requesterAt returns the requester at an address, one without limits for "".
func requesterAt(address string) oauth.Requester {
	parsed, _ := netip.ParseAddr(address)
	return oauth.RequesterAt(parsed, oauth.Limits{})
}

var _ = Describe("Limiting fetches", Label("C21"), func() {
	DescribeTable("finds the registrable domain", func(url, domain string) {
		Expect(domainOf(oauth.Fetch{At: oauth.RestoreClientID(url)})).To(Equal(domain))
	},
		Entry(nil, "https://app.Client.example:443/x", "client.example"),
		Entry(nil, "https://a.b.client.co.uk/x", "client.co.uk"),
		Entry(nil, "https://one.github.io/x", "one.github.io"),
		Entry(nil, "https://app.client.example:8443/x", "client.example"),
		Entry(nil, "https://127.0.0.1:8443/x", "127.0.0.1:8443"),
		Entry(nil, "https://[::1]:8443/x", "[::1]:8443"),
		Entry(nil, "https://localhost:8443/x", "localhost:8443"),
	)
})
