package cimd

import (
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Caching the documents of clients in use", Label("C54"), func() {
	const attacker, person, colleague = "attacker", "person", "colleague"
	var kept *records[int]
	BeforeEach(func() { kept = newRecords[int](6, 1, func() {}) })

	flood := func(owner string) {
		for i := range 50 {
			kept.keep(fmt.Sprint(owner, i), owner)
		}
	}
	has := func(url string) bool { return kept.byURL[url] != nil }

	It("keeps them while one owner floods it", func() {
		kept.keep("a", person)
		kept.keep("b", person)
		kept.keep("c", colleague)
		flood(attacker)
		Expect([]bool{has("a"), has("b"), has("c")}).To(HaveEach(true))
		Expect(kept.counts).To(Equal(map[string]int{person: 2, colleague: 1, attacker: 3}))
	})

	DescribeTable("keeps a document that the flooding owner has too", func(first, second string) {
		kept.keep("a", first)
		kept.keep("a", second)
		kept.keep("b", person)
		flood(attacker)
		Expect(has("a")).To(BeTrue())
		Expect(kept.counts).To(Equal(map[string]int{person: 2, attacker: 5}))
	},
		Entry("because the attacker claimed it", person, attacker),
		Entry("because the attacker had it first", attacker, person),
	)

	It("evicts the documents of two flooding owners that share them", func() {
		kept.keep("a", person)
		kept.keep("b", person)
		for i := range 50 {
			kept.keep(fmt.Sprint(i), "one")
			kept.keep(fmt.Sprint(i), "two")
		}
		Expect([]bool{has("a"), has("b")}).To(HaveEach(true))
	})

	It("evicts the least recently used document when all owners have one", func() {
		for i := range 6 {
			kept.keep(fmt.Sprint(i), fmt.Sprint("owner-", i))
		}
		kept.keep("0", "owner-0")
		kept.keep("new", person)
		Expect([]bool{has("0"), has("1"), has("2"), has("new")}).To(Equal([]bool{true, false, true, true}))
	})

	It("counts a document once for an owner", func() {
		kept.keep("a", person)
		kept.keep("a", person)
		Expect(kept.counts).To(Equal(map[string]int{person: 1}))
		kept.remove("a")
		Expect(kept.counts).To(BeEmpty())
	})

	It("limits the owners of a document, and removes the one with most documents", func() {
		kept.keep("b", attacker)
		for _, owner := range []string{person, attacker, colleague, "third", "fourth"} {
			kept.keep("a", owner)
		}
		Expect(kept.byURL["a"].owners).To(Equal([]string{person, colleague, "third", "fourth"}))
		Expect(kept.counts).To(HaveKeyWithValue(attacker, 1))
	})
})

var _ = Describe("Keeping the clients of host tokens", Label("C54"), func() {
	It("evicts one client of other tokens for a token with many clients, and then its own", func() {
		directory := openDirectory(Config{Now: newClock().now}, patient())
		client := func(kind string, i int) oauth.ClientID {
			return oauth.RestoreClientID(fmt.Sprintf("https://%s%d.example/c.json", kind, i))
		}
		known := func(id oauth.ClientID) bool { _, inUse := directory.documents.records.get(id.String()); return inUse }
		const atStart, approved = 9000, 1000
		for i := range atStart {
			directory.Keep(client("start", i), oauth.Fingerprint{})
		}
		for i := range approved {
			directory.Keep(client("approved", i), oauth.Fingerprint{1, byte(i), byte(i >> 8)})
		}
		for i := range 50 {
			directory.Keep(client("attacker", i), oauth.Fingerprint{2})
		}
		Expect(known(client("start", 0))).To(BeFalse())
		for i := range atStart - 1 {
			Expect(known(client("start", i+1))).To(BeTrue())
		}
		for i := range approved {
			Expect(known(client("approved", i))).To(BeTrue())
		}
		Expect(known(client("attacker", 48))).To(BeFalse())
		Expect(known(client("attacker", 49))).To(BeTrue())
	})
})

var _ = Describe("Caching documents", Label("C54", "C36"), func() {
	var kept *records[int]
	var evicted int
	attacker, person := netip.MustParsePrefix("2001:db8::/48"), netip.MustParsePrefix("192.0.2.0/24")
	BeforeEach(func() {
		evicted = 0
		kept = newRecords[int](2, 3, func() { evicted++ })
	})
	add := func(url string, network netip.Prefix) { kept.set(url, &entry[int]{}, network) }
	has := func(url string) bool {
		found, _ := kept.get(url)
		return found != nil
	}
	others := func() int { return len(kept.byURL) - kept.inUse }

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
		Expect(others()).To(Equal(3))
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

	It("evicts no document of a client in use for one of another, though its owner has most", func() {
		kept.keep("used1", "ann")
		kept.keep("used2", "ann")
		for i, address := range []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/48"} {
			add(fmt.Sprint(i), netip.MustParsePrefix(address))
		}
		for _, url := range []string{"used1", "used2"} {
			_, inUse := kept.get(url)
			Expect(inUse).To(BeTrue(), url)
		}
		Expect(has("0")).To(BeFalse())
		Expect(others()).To(Equal(3))
	})

	It("replaces a renewed document", func() {
		add("a", attacker)
		add("a", person)
		Expect(others()).To(Equal(1))
		Expect(kept.counts).To(Equal(map[string]int{attacker.String(): 1}))
	})

	It("does not replace a version that it does not know", func() {
		old, renewed := &entry[int]{value: 1}, &entry[int]{value: 2}
		kept.replace("a", nil, old, person)
		kept.replace("a", nil, &entry[int]{}, person)
		kept.replace("a", old, renewed, person)
		kept.replace("a", old, &entry[int]{}, person)
		found, _ := kept.get("a")
		Expect(found).To(BeIdenticalTo(renewed))
		kept.replace("b", old, renewed, person)
		Expect(has("b")).To(BeFalse())
	})

	It("never evicts clients in use in favor of others", func() {
		add("used", person)
		kept.keep("used", "token")
		for i := range 20 {
			add(fmt.Sprint(i), person)
		}
		Expect(has("used")).To(BeTrue())
		add("used", person)
		Expect(others()).To(Equal(3))
		Expect(kept.counts).To(Equal(map[string]int{person.String(): 3, "token": 1}))
	})

	It("knows clients in use before their documents are fetched", func() {
		kept.keep("used", "token")
		found, inUse := kept.get("used")
		Expect(found).To(BeNil())
		Expect(inUse).To(BeTrue())
		add("used", attacker)
		kept.keep("used", "token")
		Expect(has("used")).To(BeTrue())
		Expect(others()).To(BeZero())
		kept.forget("used")
		_, inUse = kept.get("used")
		Expect(inUse).To(BeTrue())
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
