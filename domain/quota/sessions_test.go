package quota

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Bounding sessions", Label("G20"), func() {
	type limiter = OpenSessions[string]
	bounded := func(all, perPerson int) *limiter {
		return NewOpenSessions[string](all, perPerson)
	}
	open := func(l *limiter, session, person string) string {
		evicted, evicts := l.Add(session, person)
		Expect(evicts).To(Equal(evicted != ""))
		return evicted
	}
	fill := func(l *limiter, person string, sessions ...string) {
		GinkgoHelper()
		for _, session := range sessions {
			Expect(open(l, session, person)).To(BeEmpty())
		}
	}

	It("ends a person's own idlest session at the limit of a person, even when another person has an idler one",
		func() {
			l := bounded(10, 2)
			fill(l, "bob", "b1")
			fill(l, "ada", "a1", "a2")
			l.BeginCall("a1")
			l.EndCall("a1")
			Expect(open(l, "a3", "ada")).To(Equal("a2"))
			Expect(open(l, "a4", "ada")).To(Equal("a1"))
			Expect(open(l, "b2", "bob")).To(BeEmpty())
		})

	It("ends a session with a call under way only when all of the person's have one", func() {
		l := bounded(10, 2)
		fill(l, "ada", "a1", "a2")
		l.BeginCall("a1")
		Expect(open(l, "a3", "ada")).To(Equal("a2"))
		l.BeginCall("a3")
		Expect(open(l, "a4", "ada")).To(Equal("a1"))
		l.BeginCall("a4")
		l.BeginCall("a4")
		l.EndCall("a4")
		l.EndCall("a3")
		Expect(open(l, "a5", "ada")).To(Equal("a3"), "a4 still has a call")
	})

	It("counts a session once that is added again", func() {
		l := bounded(10, 2)
		fill(l, "ada", "a1", "a1", "a1", "a2")
		Expect(open(l, "a1", "ada")).To(BeEmpty())
		Expect(open(l, "a3", "ada")).To(Equal("a2"), "the one that was used longest ago")
		Expect(open(l, "a4", "ada")).To(Equal("a1"))
	})

	It("counts idleness from the end of the last call", func() {
		l := bounded(10, 2)
		fill(l, "ada", "a1", "a2")
		l.BeginCall("a1")
		l.BeginCall("a2")
		l.EndCall("a2")
		l.EndCall("a1")
		Expect(open(l, "a3", "ada")).To(Equal("a2"))
	})

	It("ends the idlest session of the person with the most sessions at the total limit", func() {
		l := bounded(4, 4)
		fill(l, "bob", "b1")
		fill(l, "ada", "a1", "a2", "a3")
		Expect(open(l, "c1", "cyd")).To(Equal("a1"))
		Expect(open(l, "c2", "cyd")).To(Equal("a2"), "idler than c1, of those with two")
	})

	It("counts the newcomer among the sessions of its person", func() {
		l := bounded(3, 3)
		fill(l, "ada", "a1")
		fill(l, "bob", "b1")
		fill(l, "cyd", "c1")
		Expect(open(l, "c2", "cyd")).To(Equal("c1"))
		Expect(open(l, "d1", "dan")).To(Equal("a1"), "all have one, and a1 is the idlest")
	})

	It("ends an idle session before one in use among people with equally many", func() {
		l := bounded(2, 2)
		fill(l, "ada", "a1")
		fill(l, "bob", "b1")
		l.BeginCall("a1")
		Expect(open(l, "c1", "cyd")).To(Equal("b1"))
		l.BeginCall("c1")
		Expect(open(l, "d1", "dan")).To(Equal("a1"), "both are in use, and a1 for longer")
	})

	It("replaces the only session that may be open", func() {
		l := bounded(1, 1)
		fill(l, "ada", "a1")
		Expect(open(l, "a2", "ada")).To(Equal("a1"))
		Expect(open(l, "b1", "bob")).To(Equal("a2"))
	})

	It("frees the places of sessions that end, and forgets them", func() {
		l := bounded(2, 2)
		for i := range 5 {
			session := fmt.Sprint(i)
			fill(l, "ada", session)
			l.BeginCall(session)
			l.Remove(session)
			l.EndCall(session)
			l.Remove(session)
		}
		Expect(l.sessions).To(BeEmpty())
		Expect(l.people).To(BeEmpty())
	})
})
