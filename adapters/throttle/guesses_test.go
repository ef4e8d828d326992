package throttle

import (
	"context"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestThrottle(t *testing.T) {
	suite.Run(t, "Throttling")
}

var _ = Describe("Limiting guesses", Label("B6"), func() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var guesses *Guesses
	BeforeEach(func() { guesses = NewGuesses() })
	n := 0
	each := func() string { n++; return strconv.Itoa(n) }
	same := func() string { return "same" }
	attempt := func(address, ticket func() string, at time.Time) time.Duration {
		settle, wait, err := guesses.Attempt(context.Background(), address(), ticket(), at)
		Expect(err).NotTo(HaveOccurred())
		if wait == 0 {
			settle(true)
		}
		return wait
	}
	spend := func(times int, address, ticket func() string) {
		GinkgoHelper()
		for range times {
			Expect(attempt(address, ticket, noon)).To(BeZero())
		}
	}

	It("lets an address fail five times in five minutes", func() {
		spend(5, same, each)
		Expect(attempt(same, each, noon.Add(time.Minute))).To(Equal(4 * time.Minute))
		Expect(attempt(same, each, noon.Add(5*time.Minute))).To(BeZero())
	})

	It("lets a consent page fail five times, from wherever", func() {
		spend(5, each, same)
		Expect(attempt(each, same, noon.Add(30*time.Minute))).To(BeNumerically(">", 0))
	})

	It("has no window for a page without a ticket", func() {
		none := func() string { return "" }
		spend(perTicket+1, each, none)
		Expect(guesses.tickets.Len()).To(BeZero())
	})

	It("remembers nobody who was right", func() {
		for range remembered {
			settle, _, _ := guesses.Attempt(context.Background(), each(), each(), noon)
			settle(false)
		}
		Expect(guesses.addresses.Len() + guesses.tickets.Len()).To(BeZero())
	})

	It("counts on behind a guess that was right", func() {
		spend(4, same, each)
		settle, _, _ := guesses.Attempt(context.Background(), "same", each(), noon)
		settle(false)
		spend(1, same, each)
		Expect(attempt(same, each, noon)).To(Equal(5 * time.Minute))
	})

	It("asks to come back when every full window is over", func() {
		spend(5, same, same)
		Expect(attempt(same, same, noon)).To(Equal(time.Hour))
		Expect(attempt(same, each, noon)).To(Equal(5 * time.Minute))
	})

	It("lets everybody together fail a hundred times a minute", func() {
		spend(100, each, each)
		Expect(attempt(each, each, noon)).To(Equal(time.Minute))
		Expect(attempt(each, each, noon.Add(time.Minute))).To(BeZero())
	})

	It("asks the sixth to come back in a moment while five are being judged, and forgets those that were right", func() {
		var settles []func(failed bool)
		for range 5 {
			settle, wait, _ := guesses.Attempt(context.Background(), "a", "t", noon)
			Expect(wait).To(BeZero())
			settles = append(settles, settle)
		}
		_, wait, _ := guesses.Attempt(context.Background(), "a", "t", noon)
		Expect(wait).To(Equal(time.Second))
		for _, settle := range settles {
			settle(false)
		}
		_, wait, _ = guesses.Attempt(context.Background(), "a", "t", noon)
		Expect(wait).To(BeZero())
	})

	It("remembers a bounded number of addresses", func() {
		for i := range 2 * remembered {
			attempt(each, each, noon.Add(time.Duration(i)*time.Second))
		}
		Expect(remembered).To(Equal(10_000))
		Expect(guesses.addresses.Len()).To(Equal(remembered))
		Expect(guesses.tickets.Len()).To(Equal(remembered))
	})

	It("locks nobody out for longer than a window when the clock is set back", Label("I23"), func() {
		settle, wait, _ := guesses.Attempt(context.Background(), "a", "t", noon.AddDate(4, 0, 0))
		Expect(wait).To(BeZero())
		settle(true)
		for day := range 8 {
			at := noon.AddDate(0, 0, day)
			Expect(attempt(func() string { return "a" }, each, at)).To(BeZero(), "a failure a day is no guessing")
		}
	})
})
