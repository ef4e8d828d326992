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

	It("returns the mean of the two middle values for an even number of rounds", func() {
		Expect(spreadOf([]float64{4, 1, 3, 2}).median).To(Equal(2.5))
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
		Entry("but not of one by less", rate, 1.0, .76, 0),
		Entry("of a latency that is more than a third higher", tail, 1.0, 1.34, 1),
		Entry("but not of one by less", tail, 1.0, 1.32, 0),
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

	It("requires no figure for a limit", func() {
		r := rounds(rate, [2]float64{1, 1})
		r.line.compare = reach(rate, "ours", "theirs")
		Expect(falls(r, map[string]float64{}, figures{})).To(BeEmpty())
	})

	It("keeps the best attempt", func() {
		best := map[string]float64{}
		for _, value := range []float64{.5, .9, .7} {
			rounds(rate, [2]float64{value, 1}).keepBest(best)
		}
		Expect(best).To(HaveKeyWithValue("ours ÷ theirs, per s", .9))
	})
})
