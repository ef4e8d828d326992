package throttle

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Limiting failures", Label("D31"), func() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

	It("keeps an address away that has failed sixty times in a minute, and no other", func() {
		failures := NewFailures()
		for range 60 {
			Expect(failures.Wait("a", noon)).To(BeZero())
			failures.Failed("a", noon)
		}
		Expect(failures.Wait("a", noon.Add(20*time.Second))).To(Equal(40 * time.Second))
		Expect(failures.Wait("b", noon)).To(BeZero())
		Expect(failures.Wait("a", noon.Add(time.Minute))).To(BeZero())
	})
})
