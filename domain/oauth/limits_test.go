package oauth

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Limits", Label("B6", "F9"), func() {
	It("have a default for each field", func() {
		Expect(Limits{}.WithDefaults()).To(Equal(DefaultLimits()))
		changed := Limits{MaxSessions: 7}.WithDefaults()
		Expect(changed.MaxSessions).To(Equal(7))
		Expect(changed.MaxSessionsPerPerson).To(Equal(100))
	})

	It("are valid by default", func() { Expect(DefaultLimits().check()).To(BeEmpty()) })

	DescribeTable("report", func(change func(*Limits), mistake string) {
		limits := DefaultLimits()
		change(&limits)
		Expect(texts(limits.check())).To(ConsistOf(ContainSubstring(mistake)))
	},
		Entry("a number below one", func(l *Limits) { l.MaxSessions = -1 }, "MaxSessions is -1: choose 1 or more"),
		Entry("IPv4 in IPv6", func(l *Limits) {
			l.UnlimitedNetworks = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
		}, "write networks such as 203.0.113.0/24"),
		Entry("an invalid network", func(l *Limits) {
			l.UnlimitedNetworks = []netip.Prefix{{}}
		}, "UnlimitedNetworks has"),
	)
})
