package bootstrap

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Starting a program", Label("U25"), func() {
	It("is limited for each person, to thirty in a minute or three for each process of theirs", func() {
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
