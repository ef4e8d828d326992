package limits

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Limiting wrong tokens", Label("B6", "B18"), func() {
	const office, other = "203.0.113.7", "198.51.100.7"
	var f *fixture
	BeforeEach(func() { f = newFixture(NewMemory(), func(*oauth.Limits) {}) })

	It("demands a proof of work after five wrong tokens in five minutes, from that address only", func() {
		f.fail(5, office, noon)
		Expect(f.admit(f.guess(office), noon.Add(4*time.Minute))).To(Equal(proof))
		Expect(f.admit(f.guess(other), noon)).To(Equal(admitted))
		Expect(f.admit(f.guess(office), noon.Add(5*time.Minute))).To(Equal(admitted))
	})

	It("admits a proven guess, and counts it", func() {
		f.fail(5, office, noon)
		proven := f.guess(office)
		proven.Proven = true
		Expect(f.try(proven, oauth.GuessWrong, noon)).To(Equal(admitted))
		Expect(f.admit(f.guess(office), noon)).To(Equal(proof))
	})

	It("counts the same wrong token once", func() {
		same := f.guess(office)
		for i := range 30 {
			Expect(f.try(same, oauth.GuessWrong, noon.Add(time.Duration(i)*rejectedFor))).To(BeZero())
		}
		f.fail(4, office, noon.Add(time.Minute))
		Expect(f.admit(f.guess(office), noon.Add(time.Minute))).To(Equal(proof))
	})

	It("repeats the verdict on a wrong token for five seconds, at the same MCP server only", func() {
		wrong := f.guess(office)
		f.try(wrong, oauth.GuessWrong, noon)
		Expect(f.admit(wrong, noon.Add(rejectedFor-time.Millisecond)).KnownWrong).To(BeTrue())
		Expect(f.admit(wrong, noon.Add(rejectedFor)).KnownWrong).To(BeFalse())
		elsewhere := wrong
		elsewhere.Resource = "https://cms.example.com/files"
		Expect(f.admit(elsewhere, noon).KnownWrong).To(BeFalse())
		elsewhere.Resource = ""
		f.guesses.RecordResult(context.Background(), elsewhere, oauth.GuessWrong, noon)
		Expect(f.admit(elsewhere, noon).KnownWrong).To(BeFalse(), "an empty connections page is no verdict")
	})

	It("counts no right or undecided guesses", func() {
		for range 30 {
			Expect(f.try(f.guess(office), oauth.GuessRight, noon)).To(BeZero())
			Expect(f.try(f.guess(office), oauth.GuessUndecided, noon)).To(BeZero())
		}
		f.fail(5, office, noon)
		Expect(f.admit(f.guess(office), noon)).To(Equal(proof))
	})

	It("makes sixteen addresses known by one right token, and no more", func() {
		right := f.guess(office)
		address := func(i int) string { return netip.AddrFrom4([4]byte{11, byte(i), 0, 1}).String() }
		for range 2 {
			for i := range addressesPerToken + 1 {
				right.By = f.guess(address(i)).By
				Expect(f.try(right, oauth.GuessRight, noon)).To(BeZero())
			}
		}
		for i := range 100 {
			f.fail(1, netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String(), noon)
		}
		Expect(f.admit(f.guess(address(addressesPerToken-1)), noon)).To(Equal(admitted))
		Expect(f.admit(f.guess(address(addressesPerToken)), noon)).To(Equal(proof))
	})

	It("lets a network that needs proofs look up a token a second, after ten at once", func() {
		by, stranger := f.guess(office).By, f.guess(other).By
		for range 10 {
			Expect(f.guesses.MayLookUp(by, noon)).To(BeTrue())
		}
		Expect(f.guesses.MayLookUp(by, noon)).To(BeFalse())
		Expect(f.guesses.MayLookUp(stranger, noon)).To(BeTrue())
		Expect(f.guesses.MayLookUp(by, noon.Add(time.Second))).To(BeTrue())
	})

	It("gives no turn for a used proof", func() {
		by := f.guess(office).By
		Expect(f.guesses.UseProof(oauth.Digest{1})).To(BeTrue())
		for range 30 {
			Expect(f.guesses.AdmitAfterWait(by, oauth.Digest{1}, noon)).To(BeFalse())
		}
		Expect(f.guesses.AdmitAfterWait(by, oauth.Digest{2}, noon)).To(BeTrue())
	})

	DescribeTable("counts by networks with growing limits",
		func(limit int, address func(i int) string, neighbour, stranger string) {
			for i := range limit {
				Expect(f.try(f.guess(address(i)), oauth.GuessWrong, noon.Add(time.Duration(i)*time.Second))).
					To(BeZero())
			}
			at := noon.Add(time.Duration(limit) * time.Second)
			Expect(f.admit(f.guess(neighbour), at)).To(Equal(proof))
			Expect(f.admit(f.guess(stranger), at)).To(Equal(admitted))
		},
		Entry("a /24", 25, func(i int) string {
			return netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}).String()
		}, "203.0.113.200", "203.0.114.1"),
		Entry("a /64", 5, func(i int) string {
			return "2001:db8::" + string(rune('1'+i))
		}, "2001:db8::ffff", "2001:db8:0:1::1"),
		Entry("a /56", 25, func(i int) string {
			return "2001:db8:0:" + hex(i) + "::1"
		}, "2001:db8:0:ff::1", "2001:db8:0:100::1"),
		Entry("a /48", 125, func(i int) string {
			return "2001:db8:0:" + hex(i) + "00::1"
		}, "2001:db8:0:ff00::1", "2001:db8:1::1"),
	)

	It("demands a proof from unknown addresses after a hundred wrong tokens of all addresses in a minute", func() {
		Expect(f.try(f.guess(other), oauth.GuessRight, noon)).To(BeZero())
		for i := range 100 {
			f.fail(1, netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String(), noon)
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(proof))
		Expect(f.admit(f.guess(other), noon)).To(Equal(admitted), "a right token came from there")
		Expect(f.admit(f.guess(office), noon.Add(time.Minute))).To(Equal(admitted))
	})

	It("admits thirty attempts a minute with each token that has active grants", func() {
		f.fail(5, office, noon)
		holder := f.guess(office)
		holder.HasGrants = true
		for range f.limits.MaxAttemptsPerToken {
			Expect(f.admit(holder, noon)).To(Equal(admitted))
		}
		Expect(f.admit(holder, noon)).To(Equal(proof))
		Expect(f.admit(holder, noon.Add(2*time.Second))).To(Equal(admitted))
		another := f.guess(office)
		another.HasGrants = true
		Expect(f.admit(another, noon)).To(Equal(admitted))
	})

	It("does not count a token with active grants against its network", func() {
		f.fail(4, office, noon)
		revoked := f.guess(office)
		revoked.HasGrants = true
		f.guesses.RecordResult(context.Background(), revoked, oauth.GuessWrong, noon)
		f.fail(1, office, noon)
	})

	It("neither limits nor counts the networks that the operator lists", func() {
		f = newFixture(NewMemory(), func(l *oauth.Limits) {
			l.UnlimitedNetworks = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
		})
		f.fail(200, office, noon)
		Expect(f.admit(f.guess("::ffff:203.0.113.9"), noon)).To(Equal(admitted))
		Expect(f.admit(f.guess(other), noon)).To(Equal(admitted))
	})

	It("accepts a proof once", func() {
		Expect(f.guesses.UseProof(oauth.Digest{1})).To(BeTrue())
		Expect(f.guesses.UseProof(oauth.Digest{1})).To(BeFalse())
		Expect(f.guesses.UseProof(oauth.Digest{2})).To(BeTrue())
	})

	It("admits a browser without script every two seconds for each address, and five times as often for each larger "+
		"network", func() {
		take := func(address string, at time.Time) bool {
			return f.guesses.AdmitAfterWait(f.guess(address).By, oauth.Digest{}, at)
		}
		for range admittedBurst {
			Expect(take(office, noon)).To(BeTrue())
		}
		Expect(take(office, noon)).To(BeFalse())
		Expect(take(other, noon)).To(BeTrue())
		Expect(take("203.0.113.8", noon)).To(BeFalse(), "the /24 has used up its turns, too")
		Expect(take("203.0.113.8", noon.Add(2*time.Second/growth))).To(BeTrue())
		Expect(take(office, noon.Add(2*time.Second-time.Millisecond))).To(BeFalse())
		Expect(take(office, noon.Add(2*time.Second))).To(BeTrue())
	})

	It("remembers a bounded number of windows and tokens", func() {
		memory := NewMemory()
		f = newFixture(memory, func(l *oauth.Limits) { l.MaxWrongTokens = 1_000_000 })
		for i := range 40_000 {
			guess := f.guess(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}).String())
			f.guesses.RecordResult(context.Background(), guess, oauth.GuessWrong, noon)
		}
		Expect(memory.windows.Len()).To(Equal(maxKeys))
		Expect(f.guesses.rejected.kept.Len()).To(Equal(maxKeys))
		Expect(f.guesses.counted.kept.Len()).To(Equal(maxKeys))
	})

	It("returns ErrUnavailable while the windows cannot be read or named", Label("D30"), func() {
		down := errors.New("the database is down")
		f = newFixture(broken{Memory: NewMemory(), reads: down}, func(*oauth.Limits) {})
		_, err := f.guesses.Admit(context.Background(), f.guess(office), noon)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
		Expect(err).To(MatchError(down))
		nameless := NewGuesses(NewMemory(), &oauth.Settings{Keys: seal.NewKeyRing(kept{down: down}), Limits: f.limits},
			slog.New(slog.DiscardHandler))
		_, err = nameless.Admit(context.Background(), f.guess(office), noon)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
	})

	It("logs a wrong token that cannot be counted", Label("D30"), func() {
		log := new(strings.Builder)
		f = newFixture(broken{Memory: NewMemory(), counts: errors.New("the database is down")}, func(*oauth.Limits) {})
		f.guesses.logger = slog.New(slog.NewTextHandler(log, nil))
		f.guesses.RecordResult(context.Background(), f.guess(office), oauth.GuessWrong, noon)
		Expect(log.String()).To(ContainSubstring("the database is down"))
	})

	It("locks no address out for longer than a window when the clock is set back", Label("I23"), func() {
		f.fail(5, office, noon.AddDate(4, 0, 0))
		Expect(f.admit(f.guess(office), noon)).To(Equal(admitted))
	})
})
