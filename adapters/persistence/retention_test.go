package persistence

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The retention of a trace", func() {
	// exceeding counts steps of the attempts, the newest first; the newest has the highest number.
	exceeding := func(keep int, proven []string, attempts ...string) []int64 {
		steps := retention{keep: keep, proven: map[uint64]struct{}{}}
		for _, attempt := range proven {
			steps.prove([]byte(attempt))
		}
		for i, attempt := range attempts {
			steps.count(int64(len(attempts)-i), []byte(attempt))
		}
		return steps.exceeding()
	}

	It("keeps the newest steps with a grant and the newest of the others, and deletes the others first", func() {
		Expect(exceeding(1, []string{"a", "b"}, "a", "x", "b", "y", "a")).To(Equal([]int64{2, 3, 1}))
	})

	It("keeps all steps below the limits", func() {
		Expect(exceeding(2, []string{"a"}, "a", "x", "a", "y")).To(BeEmpty())
	})

	It("does not count a step without an attempt as proof", func() {
		Expect(exceeding(1, []string{"a", ""}, "a", "", "")).To(Equal([]int64{1}))
		Expect(exceeding(1, []string{""}, "x", "")).To(Equal([]int64{1}))
	})
})
