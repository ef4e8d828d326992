package stream

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// slowSession takes long to close.
type slowSession struct{ closing chan struct{} }

// ID implements Session.
func (slowSession) ID() string { return "slow" }

// End implements Session.
func (s slowSession) End(error) { <-s.closing }

// endedSession reports the cause of its end.
type endedSession struct {
	id     string
	causes chan error
}

// ID implements Session.
func (s endedSession) ID() string { return s.id }

// End implements Session.
func (s endedSession) End(cause error) { s.causes <- cause }

var _ = Describe("A session that is not used", Label("G20"), func() {
	var registry *Registry
	open := func(id string) endedSession {
		GinkgoHelper()
		session := endedSession{id, make(chan error, 1)}
		Expect(registry.AddSession(session, &oauth.Caller{Grant: "A", Subject: "ann"})).To(BeTrue())
		return session
	}

	DescribeTable("is told why it ends", func(end func(), cause error) {
		registry = NewRegistry(Options{Now: time.Now, Limits: oauth.DefaultLimits()})
		session := open("session")
		end()
		Eventually(session.causes).Should(Receive(MatchError(cause)))
	},
		Entry("when its grant has ended", func() { registry.End(endedGrants("A")) }, ErrEnded),
		Entry("when the service shuts down", func() { registry.Drain() }, ErrDraining),
	)
})

var _ = Describe("A session whose last grant has ended", Label("G14", "G16"), func() {
	It("accepts no further request while it closes, also not of a new grant", func() {
		session := slowSession{make(chan struct{})}
		DeferCleanup(func() { close(session.closing) })
		set := NewRegistry(Options{Now: time.Now, Limits: oauth.DefaultLimits()})
		Expect(set.AddSession(session, &oauth.Caller{Grant: "A", Subject: "ann"})).To(BeTrue())
		Expect(set.UseSession("slow", "B")).To(BeTrue())
		set.End(endedGrants("A"))
		Expect(set.UseSession("slow", "B")).To(BeTrue())
		set.End(endedGrants("B"))
		Expect(set.UseSession("slow", "C")).To(BeFalse())
		set.RemoveSession("slow")
		Expect(set.UseSession("slow", "C")).To(BeFalse(), "the handler may still know it for a moment")
	})
})

func endedGrants(ids ...string) oauth.Ended {
	ended := oauth.Ended{Grants: map[string]oauth.EndedGrant{}}
	for _, id := range ids {
		ended.Grants[id] = oauth.EndedGrant{}
	}
	return ended
}
