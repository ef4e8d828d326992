package cimd

import (
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Caching documents", Label("C54", "C36"), func() {
	var kept *entries[int]
	var evicted int
	attacker, person := netip.MustParsePrefix("2001:db8::/48"), netip.MustParsePrefix("192.0.2.0/24")
	BeforeEach(func() {
		evicted = 0
		kept = newEntries[int](2, 3, func() { evicted++ })
	})
	add := func(key string, network netip.Prefix) { kept.add(key, &entry[int]{}, network) }
	has := func(key string) bool {
		found, _ := kept.get(key)
		return found != nil
	}

	It("evicts the least recently used document of the network with most documents", func() {
		add("person", person)
		add("a1", attacker)
		add("a2", attacker)
		Expect(has("a1")).To(BeTrue())
		for i := range 20 {
			add(fmt.Sprint("more", i), attacker)
		}
		Expect(has("person")).To(BeTrue())
		Expect(has("a1")).To(BeFalse())
		Expect(has("more19")).To(BeTrue())
		Expect(kept.others.recent.Len()).To(Equal(3))
		Expect(evicted).To(Equal(20))
	})

	It("evicts the least recently used document when all networks have equally many", func() {
		for i, address := range []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"} {
			add(fmt.Sprint(i), netip.MustParsePrefix(address))
		}
		Expect(has("0")).To(BeTrue())
		add("3", attacker)
		Expect(has("1")).To(BeFalse())
		Expect(has("0")).To(BeTrue())
	})

	It("replaces a renewed document", func() {
		add("a", attacker)
		add("a", person)
		Expect(kept.others.recent.Len()).To(Equal(1))
		Expect(kept.others.counts).To(Equal(map[string]int{attacker.String(): 1}))
	})

	It("never evicts clients in use in favor of others", func() {
		add("used", person)
		kept.keep("used", "token")
		for i := range 20 {
			add(fmt.Sprint(i), person)
		}
		Expect(has("used")).To(BeTrue())
		add("used", person)
		Expect(kept.others.recent.Len()).To(Equal(3))
		Expect(kept.others.counts).To(Equal(map[string]int{person.String(): 3}))
	})

	It("knows clients in use before their documents are fetched", func() {
		kept.keep("used", "token")
		found, known := kept.get("used")
		Expect(found).To(BeNil())
		Expect(known).To(BeTrue())
		add("used", attacker)
		kept.keep("used", "token")
		Expect(has("used")).To(BeTrue())
		Expect(kept.others.recent.Len()).To(BeZero())
	})

	It("keeps a limited number of clients in use, the most recently used ones", func() {
		for _, key := range []string{"1", "2", "3"} {
			add(key, person)
			kept.keep(key, "token")
		}
		Expect(has("1")).To(BeFalse())
		Expect(has("2")).To(BeTrue())
		Expect(evicted).To(Equal(1))
	})
})
