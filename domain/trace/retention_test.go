package trace_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/trace"
)

var _ = Describe("Retention", func() {
	// exceeding counts steps of the attempts, the newest first; the newest has the highest number.
	exceeding := func(keep int, proven []string, attempts ...string) []int64 {
		retention := trace.Retain(keep)
		for _, attempt := range proven {
			retention.Prove([]byte(attempt))
		}
		for i, attempt := range attempts {
			retention.Count(int64(len(attempts)-i), []byte(attempt))
		}
		return retention.Exceeding()
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
