package replica

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Waiting for a replica that is silent", Label("R4"), func() {
	It("forgets a peer that no call has tried for long", func() {
		var u unreachablePeers
		start := time.Now()
		Expect(u.note("a", start)).To(BeZero())
		Expect(u.note("a", start.Add(silenceMemory))).To(Equal(silenceMemory))
		Expect(u.note("b", start.Add(2*silenceMemory+time.Second))).To(BeZero())
		Expect(u.known).To(HaveLen(1))
	})
})
