package main

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestBench(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Benchmark arithmetic")
}

// rounds returns results of a line with two servers.
func rounds(m metric, pairs ...[2]float64) results {
	r := results{line: line{name: "a line", compare: against(m, "ours", bar{peer: "theirs"})}}
	for _, pair := range pairs {
		r.rounds = append(r.rounds, map[string]sample{"ours": {m: pair[0]}, "theirs": {m: pair[1]}})
	}
	return r
}

var _ = Describe("Comparing two servers", func() {
	It("returns the median of the ratios of each round", func() {
		r := rounds(rate, [2]float64{10, 100}, [2]float64{90, 100}, [2]float64{1, 2})
		Expect(r.compare(r.line.compare[0])).To(Equal(spread{median: .5, least: .1, most: .9}))
	})

	It("leaves out comparisons with a skipped server", func() {
		r := rounds(rate, [2]float64{1, 2})
		delete(r.rounds[0], "theirs")
		Expect(r.compared()).To(BeEmpty())
	})

	DescribeTable("reports a fall", func(m metric, committed, now float64, count int) {
		r, best := rounds(m, [2]float64{now, 1}), map[string]float64{}
		r.keepBest(best)
		name := r.line.compare[0].name()
		Expect(falls(r, best, figures{"a line": {name: committed}})).To(HaveLen(count))
	},
		Entry("of a rate by more than a quarter", rate, 1.0, .74, 1),
		Entry("of a latency that is more than a third higher", tail, 1.0, 1.34, 1),
	)

	It("requires a committed figure for every comparison", func() {
		Expect(falls(rounds(rate, [2]float64{1, 1}), map[string]float64{"ours ÷ theirs, per s": 1}, figures{})).
			To(ConsistOf(ContainSubstring("no committed figure")))
	})

	It("ignores comparisons that depend on the disk", func() {
		r, best := rounds(rate, [2]float64{1, 2}), map[string]float64{}
		r.line.compare = byDisk(r.line.compare)
		r.keepBest(best)
		Expect(falls(r, best, figures{"a line": {"ours ÷ theirs, per s": 1}})).To(BeEmpty())
	})
})
