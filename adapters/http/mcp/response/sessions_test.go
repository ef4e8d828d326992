package response

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

// Close implements Session.
func (s slowSession) Close() error {
	<-s.closing
	return nil
}

var _ = Describe("A session whose last grant has ended", Label("G14", "G16"), func() {
	It("accepts no further request while it closes, also not of a new grant", func() {
		session := slowSession{make(chan struct{})}
		DeferCleanup(func() { close(session.closing) })
		set := NewRegistry(Options{Now: time.Now, Limits: oauth.DefaultLimits()})
		Expect(set.AddSession(session, &oauth.Caller{Grant: "A", Subject: "ann"})).To(BeTrue())
		Expect(set.UseSession("slow", "B")).To(BeTrue())
		set.End(oauth.Ended{Grants: []string{"A"}})
		Expect(set.UseSession("slow", "B")).To(BeTrue())
		set.End(oauth.Ended{Grants: []string{"B"}})
		Expect(set.UseSession("slow", "C")).To(BeFalse())
		set.RemoveSession("slow")
		Expect(set.UseSession("slow", "C")).To(BeFalse(), "the handler may still know it for a moment")
	})
})
