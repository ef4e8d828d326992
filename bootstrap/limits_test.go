package bootstrap

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// counting is an oauth.WindowCounter.
type counting struct {
	oauth.Store
	shared bool
}

func (counting) Counts(_ context.Context, _ time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	return make([]oauth.WindowCount, len(windows)), nil
}
func (counting) Count(context.Context, time.Time, ...oauth.Window) error { return nil }
func (c counting) SharedByReplicas() bool                                { return c.shared }

var _ = Describe("Selecting the counter of limits", Label("B6", "C21", "I22"), func() {
	DescribeTable("uses the store:", func(store oauth.Store, forced, there bool) {
		counter, err := counterIn(store, forced)
		Expect(err).NotTo(HaveOccurred())
		Expect(counter != nil).To(Equal(there))
	},
		Entry("if several machines share it", counting{shared: true}, false, true),
		Entry("with WithSharedLimits", counting{}, true, true),
		Entry("not for one machine", counting{}, false, false),
		Entry("not if it cannot count", struct{ oauth.Store }{}, false, false),
	)

	It("fails for a store that cannot count", func() {
		_, err := counterIn(struct{ oauth.Store }{}, true)
		Expect(err).To(MatchError(ContainSubstring("omit WithSharedLimits")))
	})
})

var _ = Describe("Starting a program", Label("U25"), func() {
	It("is limited for each person, to thirty at once or three for each process of theirs", func() {
		for processes, atOnce := range map[int]int{1: 30, 20: 60} {
			mayStart := newStarts(processes)
			for range atOnce {
				Expect(mayStart("ada")).To(BeTrue())
			}
			Expect(mayStart("ada")).To(BeFalse())
			Expect(mayStart("bob")).To(BeTrue())
		}
	})
})
