package limits

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Limiting failures", Label("D31"), func() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

	It("makes an address wait after too many failures in a minute, and no other", func() {
		failures := NewFailures(3)
		for range 3 {
			Expect(failures.Failed("a", noon)).To(BeZero())
		}
		Expect(failures.Failed("a", noon.Add(20*time.Second))).To(Equal(40 * time.Second))
		Expect(failures.Failed("b", noon)).To(BeZero())
		Expect(failures.Failed("a", noon.Add(time.Minute))).To(BeZero())
	})
})
