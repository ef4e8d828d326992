package cimd

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Caching the documents of owners", Label("C54"), func() {
	const attacker, person, colleague = "attacker", "person", "colleague"
	var kept *ownedCache[int]
	BeforeEach(func() { kept = newOwnedCache[int](6, func() {}) })

	keep := func(key, owner string) {
		if !kept.claim(key, owner) {
			kept.add(key, owner, &entry[int]{})
		}
	}
	flood := func(owner string) {
		for i := range 50 {
			keep(fmt.Sprint(owner, i), owner)
		}
	}
	has := func(key string) bool { _, found := kept.byKey[key]; return found }

	It("keeps them while one owner floods it", func() {
		keep("a", person)
		keep("b", person)
		keep("c", colleague)
		flood(attacker)
		Expect([]bool{has("a"), has("b"), has("c")}).To(HaveEach(true))
		Expect(kept.counts).To(Equal(map[string]int{person: 2, colleague: 1, attacker: 3}))
	})

	DescribeTable("keeps a document that the flooding owner has too", func(first, second string) {
		keep("a", first)
		keep("a", second)
		keep("b", person)
		flood(attacker)
		Expect(has("a")).To(BeTrue())
		Expect(kept.counts).To(Equal(map[string]int{person: 2, attacker: 5}))
	},
		Entry("because the attacker claimed it", person, attacker),
		Entry("because the attacker had it first", attacker, person),
	)

	It("evicts the documents of two flooding owners that share them", func() {
		keep("a", person)
		keep("b", person)
		for i := range 50 {
			keep(fmt.Sprint(i), "one")
			keep(fmt.Sprint(i), "two")
		}
		Expect([]bool{has("a"), has("b")}).To(HaveEach(true))
	})

	It("evicts the least recently used document when all owners have one", func() {
		for i := range 6 {
			keep(fmt.Sprint(i), fmt.Sprint("owner-", i))
		}
		keep("0", "owner-0")
		keep("new", person)
		Expect([]bool{has("0"), has("1"), has("2"), has("new")}).To(Equal([]bool{true, false, true, true}))
	})

	It("counts a document once for an owner", func() {
		keep("a", person)
		keep("a", person)
		Expect(kept.counts).To(Equal(map[string]int{person: 1}))
		kept.remove("a")
		Expect(kept.counts).To(BeEmpty())
	})

	It("limits the owners of a document, and removes the one with most documents", func() {
		keep("b", attacker)
		for _, owner := range []string{person, attacker, colleague, "third", "fourth"} {
			keep("a", owner)
		}
		found, _ := kept.find("a")
		Expect(found.owners).To(Equal([]string{person, colleague, "third", "fourth"}))
		Expect(kept.counts).To(HaveKeyWithValue(attacker, 1))
	})
})

var _ = Describe("Keeping the clients of host tokens", Label("C54"), func() {
	It("evicts one client of other tokens for a token with many clients, and then its own", func() {
		directory := openDirectory(Options{Now: newClock().now}, patient())
		client := func(kind string, i int) oauth.ClientID {
			return oauth.RestoreClientID(fmt.Sprintf("https://%s%d.example/c.json", kind, i))
		}
		known := func(id oauth.ClientID) bool { _, known := directory.documents.entries.get(id.String()); return known }
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
