package limits

import (
	"context"
	"errors"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Limiting wrong tokens of less than 64 bits", Label("B6", "B19"), func() {
	const office = "203.0.113.7"
	var f *fixture
	BeforeEach(func() { f = newFixture(NewMemory(), func(l *oauth.Limits) { l.WeakTokens = true }) })

	It("refuses an address for the rest of its five minutes, even with a proof", func() {
		f.fail(5, office, noon)
		refused := f.guess(office)
		refused.Proven, refused.HasGrants = true, true
		Expect(f.admit(refused, noon.Add(time.Minute))).To(Equal(oauth.Admission{Wait: 4 * time.Minute}))
		Expect(f.admit(f.guess(office), noon.Add(5*time.Minute))).To(Equal(admitted))
	})

	It("refuses a consent page after five wrong tokens from any addresses", func() {
		for i := range 5 {
			guess := f.guess(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String())
			guess.Ticket = "one"
			Expect(f.try(guess, oauth.GuessWrong, noon)).To(BeZero())
		}
		guess := f.guess("198.51.100.1")
		guess.Ticket = "one"
		Expect(f.admit(guess, noon)).To(Equal(oauth.Admission{Wait: time.Hour}))
	})

	It("refuses every address after a hundred wrong tokens in a minute", func() {
		for i := range 100 {
			guess := f.guess(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String())
			guess.Ticket = ""
			Expect(f.try(guess, oauth.GuessWrong, noon)).To(BeZero())
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(oauth.Admission{Wait: time.Minute}))
	})

	It("makes the sixth wait a second while five are checked, and does not count right ones", func() {
		var pending []oauth.Guess
		for range 5 {
			pending = append(pending, f.guess(office))
			Expect(f.admit(pending[len(pending)-1], noon)).To(Equal(admitted))
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(oauth.Admission{Wait: time.Second}))
		for _, guess := range pending {
			f.guesses.RecordResult(context.Background(), guess, oauth.GuessRight, noon)
		}
		Expect(f.guesses.pending).To(BeEmpty())
		f.fail(5, office, noon)
		Expect(f.admit(f.guess(office), noon).Wait).To(Equal(5 * time.Minute))
	})

	It("counts a guess that is settled at a later time than another one has read", func() {
		f.fail(5, office, noon.Add(time.Second))
		Expect(f.admit(f.guess(office), noon)).To(Equal(oauth.Admission{Wait: 5*time.Minute + time.Second}))
	})

	It("frees the place of a refused guess, and of one whose counts cannot be read", func() {
		f.fail(4, office, noon)
		fifth := f.guess(office)
		Expect(f.admit(fifth, noon)).To(Equal(admitted))
		for range 9 {
			Expect(f.admit(f.guess(office), noon)).To(Equal(oauth.Admission{Wait: time.Second}))
		}
		f.guesses.counter = broken{Memory: NewMemory(), reads: errors.New("the database is down")}
		_, err := f.guesses.Admit(context.Background(), f.guess(office), noon)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
		f.guesses.RecordResult(context.Background(), fifth, oauth.GuessRight, noon)
		Expect(f.guesses.pending).To(BeEmpty())
	})

	It("counts a guess that is settled while another one reads the counts", func() {
		late := &lateCounter{Memory: NewMemory()}
		f = newFixture(late, func(l *oauth.Limits) { l.WeakTokens = true })
		f.fail(4, office, noon)
		fifth, sixth := f.guess(office), f.guess(office)
		Expect(f.admit(fifth, noon)).To(Equal(admitted))
		late.read = func() { f.guesses.RecordResult(context.Background(), fifth, oauth.GuessWrong, noon) }
		Expect(f.admit(sixth, noon)).To(Equal(oauth.Admission{Wait: time.Second}))
		Expect(f.admit(sixth, noon)).To(Equal(oauth.Admission{Wait: 5 * time.Minute}))
	})
})

// lateCounter does something once after the next read.
type lateCounter struct {
	*Memory
	read func()
}

func (l *lateCounter) Counts(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	counts, err := l.Memory.Counts(ctx, now, windows...)
	if read := l.read; read != nil {
		l.read = nil
		read()
	}
	return counts, err
}
