package oauth

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Bounding the connections of a host token", Label("J14"), func() {
	made := func(id string, at time.Duration, change ...func(*GrantSnapshot)) *AccessGrant {
		s := GrantSnapshot{ID: id, State: "active", CreatedAt: noon.Add(at), IdleEnd: noon.Add(24 * time.Hour)}
		for _, apply := range change {
			apply(&s)
		}
		return RestoreGrant(s)
	}
	used := func(at time.Duration) func(*GrantSnapshot) {
		return func(s *GrantSnapshot) { s.LastUsedAt = noon.Add(at) }
	}
	pendingCode := func(s *GrantSnapshot) { s.State = "pending" }
	overdue := func(s *GrantSnapshot) { s.IdleEnd = noon.Add(10 * time.Minute) }

	DescribeTable("ends", func(limit int, ends []string, grants ...*AccessGrant) {
		surplus := SurplusGrants(slices.Clone(grants), "new", limit, noon.Add(10*time.Minute))
		var ids []string
		for id := range surplus {
			ids = append(ids, id)
		}
		Expect(ids).To(ConsistOf(ends))
	},
		Entry("none up to the limit", 2, nil, made("a", 0), made("new", 2)),
		Entry("the oldest of those that were never used", 2, []string{"a"}, made("a", 0), made("b", 1), made("new", 2)),
		Entry("the one unused for longest, which need not be the oldest", 2, []string{"b"}, made("a", 0, used(2)), made("b", 1), made("new", 3)),
		Entry("one whose code is not redeemed yet, in its turn", 2, []string{"a"}, made("a", 0, pendingCode), made("b", 0, used(1)), made("new", 3)),
		Entry("never the new one, even when a clock made it the oldest", 1, []string{"a"}, made("new", 0), made("a", 1, used(9))),
		Entry("expired ones first", 2, []string{"b"}, made("a", 0), made("b", 1, used(5), overdue), made("new", 2)),
		Entry("as many as are too many", 1, []string{"a", "b", "c"}, made("a", 0), made("b", 1), made("c", 2), made("new", 3)),
	)

	It("forgets a grant whose code was never redeemed when the code would have expired, and any other as usual", Label("H6"), func() {
		settings := settingsOf()
		pending, active := approved(settings), redeemed(settings)
		Expect(pending.grant.End(EndedByLimit, noon)).To(BeTrue())
		Expect(active.grant.End(EndedByLimit, noon)).To(BeTrue())
		unused, _ := pending.grant.Snapshot()
		inUse, _ := active.grant.Snapshot()
		Expect(unused.ForgetAfter).To(Equal(noon.Add(settings.AuthCodeTTL)))
		Expect(inUse.ForgetAfter).To(Equal(noon.AddDate(0, 0, 30)))
	})

	It("leaves no fingerprint with a grant that has ended", func() {
		f := redeemed(settingsOf())
		Expect(f.grant.HostPrint()).NotTo(BeZero())
		f.grant.End(EndedByLimit, noon)
		ended, _ := f.grant.Snapshot()
		Expect(ended.HostPrint).To(BeNil())
	})
})
