package oauth

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The authorizations of a host token", func() {
	later := noon.Add(10 * time.Minute)
	code := func(id string, at time.Duration) *AuthorizationCode {
		return RestoreCode(CodeSnapshot{
			ConsentSnapshot: ConsentSnapshot{ID: id, State: "issued", CreatedAt: noon.Add(at)},
			ExpiresAt:       noon.Add(time.Hour),
		})
	}
	grant := func(id string, at time.Duration, change ...func(*GrantSnapshot)) *AccessGrant {
		s := GrantSnapshot{
			ConsentSnapshot: ConsentSnapshot{ID: id, State: "active", CreatedAt: noon.Add(at)},
			IdleEnd:         noon.Add(24 * time.Hour),
		}
		for _, apply := range change {
			apply(&s)
		}
		return RestoreGrant(s)
	}
	used := func(at time.Duration) func(*GrantSnapshot) {
		return func(s *GrantSnapshot) { s.LastUsedAt = noon.Add(at) }
	}
	overdue := func(s *GrantSnapshot) { s.IdleEnd = later }
	of := func(all ...Authorization) (a Authorizations) {
		for _, one := range all {
			switch one := one.(type) {
			case *AuthorizationCode:
				a.Codes = append(a.Codes, one)
			case *AccessGrant:
				a.Grants = append(a.Grants, one)
			}
		}
		return a
	}

	DescribeTable("are bounded: surplus are", Label("J14"), func(limit int, ends []string, all ...Authorization) {
		var ids []string
		for id := range of(all...).Surplus("new", limit, later) {
			ids = append(ids, id)
		}
		Expect(ids).To(ConsistOf(ends))
	},
		Entry("none up to the limit", 2, nil, grant("a", 0), code("new", 2)),
		Entry("the oldest of those that were never used", 2, []string{"a"}, grant("a", 0), grant("b", 1),
			code("new", 2)),
		Entry("the one unused for longest, which need not be the oldest", 2, []string{"b"}, grant("a", 0, used(2)),
			grant("b", 1), code("new", 3)),
		Entry("a code that is not redeemed yet, in its turn", 2, []string{"a"}, code("a", 0), grant("b", 0, used(1)),
			code("new", 3)),
		Entry("never the new one, even when a clock made it the oldest", 1, []string{"a"}, code("new", 0),
			grant("a", 1, used(9))),
		Entry("expired ones first", 2, []string{"b"}, grant("a", 0), grant("b", 1, used(5), overdue), code("new", 2)),
		Entry("as many as are too many", 1, []string{"a", "b", "c"}, grant("a", 0), code("b", 1), grant("c", 2),
			code("new", 3)),
	)

	It("end together, and those that were active are reported", Label("J10"), func() {
		all := of(code("a", 0), grant("b", 0), grant("c", 0, overdue), grant("d", 0))
		Expect(all.End(func(id string) bool { return id != "d" }, EndedByHost, later)).To(ConsistOf("a", "b"))
		Expect(all.Connections(new(Settings), later)).To(ConsistOf(HaveField("ID", "d")))
		Expect(all.Codes[0].Snapshot().State).To(Equal("withdrawn"))
	})
})
