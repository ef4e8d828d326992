package throttle

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestThrottle(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Throttling")
}

var _ = Describe("Limiting guesses", Label("B6"), func() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var guesses *Guesses
	BeforeEach(func() { guesses = NewGuesses() })
	spend := func(n int, address, ticket func(i int) string) {
		GinkgoHelper()
		for i := range n {
			Expect(guesses.Attempt(address(i), ticket(i), noon)).To(BeZero())
		}
	}
	same := func(string) func(int) string { return func(int) string { return "same" } }
	each := func(int) string { return "" }
	BeforeEach(func() {
		n := 0
		each = func(int) string { n++; return strconv.Itoa(n) }
	})

	It("lets an address fail five times in five minutes", func() {
		spend(5, same("address"), each)
		Expect(guesses.Attempt("same", "new", noon.Add(time.Minute))).To(Equal(4 * time.Minute))
		Expect(guesses.Attempt("same", "new", noon.Add(5*time.Minute))).To(BeZero())
	})

	It("lets a consent page fail five times, from wherever", func() {
		spend(5, each, same("ticket"))
		Expect(guesses.Attempt("new", "same", noon.Add(30*time.Minute))).To(BeNumerically(">", 0))
	})

	It("lets everybody together fail a hundred times a minute", func() {
		spend(100, each, each)
		Expect(guesses.Attempt("new", "new", noon)).To(Equal(time.Minute))
		Expect(guesses.Attempt("new", "new", noon.Add(time.Minute))).To(BeZero())
	})

	It("gives a place back", func() {
		for range 20 {
			Expect(guesses.Attempt("a", "t", noon)).To(BeZero())
			guesses.Spare("a", "t", noon)
		}
	})

	It("remembers a bounded number of addresses", func() {
		for i := range 2 * remembered {
			guesses.Attempt(strconv.Itoa(i), strconv.Itoa(i), noon.Add(time.Duration(i)*time.Second))
		}
		Expect(guesses.addresses.Len()).To(Equal(remembered))
		Expect(guesses.tickets.Len()).To(Equal(remembered))
	})
})
