package oauth

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Bounding sessions", Label("G20"), func() {
	type occupancy = Occupancy[string]
	bounded := func(all, perPerson int) *occupancy {
		return NewOccupancy[string](Limits{MaxSessions: all, MaxSessionsPerPerson: perPerson})
	}
	open := func(o *occupancy, session, person string) string {
		evicted, evicts := o.Open(session, person)
		Expect(evicts).To(Equal(evicted != ""))
		return evicted
	}
	fill := func(o *occupancy, person string, sessions ...string) {
		GinkgoHelper()
		for _, session := range sessions {
			Expect(open(o, session, person)).To(BeEmpty())
		}
	}

	It("ends a person's own idlest session at the limit of a person, even when another person has an idler one", func() {
		o := bounded(10, 2)
		fill(o, "bob", "b1")
		fill(o, "ada", "a1", "a2")
		o.Begin("a1")
		o.End("a1")
		Expect(open(o, "a3", "ada")).To(Equal("a2"))
		Expect(open(o, "a4", "ada")).To(Equal("a1"))
		Expect(open(o, "b2", "bob")).To(BeEmpty())
	})

	It("ends a session with a call under way only when all of the person's have one", func() {
		o := bounded(10, 2)
		fill(o, "ada", "a1", "a2")
		o.Begin("a1")
		Expect(open(o, "a3", "ada")).To(Equal("a2"))
		o.Begin("a3")
		Expect(open(o, "a4", "ada")).To(Equal("a1"))
		o.Begin("a4")
		o.Begin("a4")
		o.End("a4")
		o.End("a3")
		Expect(open(o, "a5", "ada")).To(Equal("a3"), "a4 still has a call")
	})

	It("counts idleness from the end of the last call", func() {
		o := bounded(10, 2)
		fill(o, "ada", "a1", "a2")
		o.Begin("a1")
		o.Begin("a2")
		o.End("a2")
		o.End("a1")
		Expect(open(o, "a3", "ada")).To(Equal("a2"))
	})

	It("ends the idlest session of the person who holds most when all places are taken", func() {
		o := bounded(4, 4)
		fill(o, "bob", "b1")
		fill(o, "ada", "a1", "a2", "a3")
		Expect(open(o, "c1", "cyd")).To(Equal("a1"))
		Expect(open(o, "c2", "cyd")).To(Equal("a2"), "idler than c1, of those with two")
	})

	It("counts the newcomer among the sessions of its person", func() {
		o := bounded(3, 3)
		fill(o, "ada", "a1")
		fill(o, "bob", "b1")
		fill(o, "cyd", "c1")
		Expect(open(o, "c2", "cyd")).To(Equal("c1"))
		Expect(open(o, "d1", "dan")).To(Equal("a1"), "all have one, and a1 is the idlest")
	})

	It("ends an idle session before one in use among people with equally many", func() {
		o := bounded(2, 2)
		fill(o, "ada", "a1")
		fill(o, "bob", "b1")
		o.Begin("a1")
		Expect(open(o, "c1", "cyd")).To(Equal("b1"))
		o.Begin("c1")
		Expect(open(o, "d1", "dan")).To(Equal("a1"), "both are in use, and a1 for longer")
	})

	It("replaces the only session that may be open", func() {
		o := bounded(1, 1)
		fill(o, "ada", "a1")
		Expect(open(o, "a2", "ada")).To(Equal("a1"))
		Expect(open(o, "b1", "bob")).To(Equal("a2"))
	})

	It("frees the places of sessions that end, and forgets them", func() {
		o := bounded(2, 2)
		for i := range 5 {
			session := fmt.Sprint(i)
			fill(o, "ada", session)
			o.Begin(session)
			o.Close(session)
			o.End(session)
			o.Close(session)
		}
		Expect(o.places).To(BeEmpty())
		Expect(o.people).To(BeEmpty())
	})
})
