package replica

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Waiting for a silent replica", Label("R4"), func() {
	It("forgets the silence of a peer after a while without calls", func() {
		var u unreachablePeers
		start := time.Now()
		Expect(u.record("a", start)).To(BeZero())
		Expect(u.record("a", start.Add(silenceMemory))).To(Equal(silenceMemory))
		Expect(u.record("b", start.Add(2*silenceMemory+time.Second))).To(BeZero())
		Expect(u.peers).To(HaveLen(1))
	})
})
