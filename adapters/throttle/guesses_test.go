package throttle

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestThrottle(t *testing.T) {
	suite.Run(t, "Throttling")
}

// kept keeps one server secret, or is down.
type kept struct {
	secret byte
	down   error
}

func (k kept) Secrets() ([][]byte, error) {
	secret := make([]byte, oauth.MinSecretLength)
	secret[0] = k.secret
	return [][]byte{secret}, k.down
}

// broken is a counter that is down.
type broken struct {
	*Memory
	reads, counts error
}

func (b broken) Counts(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	if b.reads != nil {
		return nil, b.reads
	}
	return b.Memory.Counts(ctx, now, windows...)
}

func (b broken) Count(ctx context.Context, now time.Time, windows ...oauth.Window) error {
	if b.counts != nil {
		return b.counts
	}
	return b.Memory.Count(ctx, now, windows...)
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixture guesses with tokens that are all different.
type fixture struct {
	limits  oauth.Limits
	guesses *Guesses
	tokens  uint64
}

func newFixture(counter oauth.WindowCounter, change func(*oauth.Limits)) *fixture {
	f := &fixture{limits: oauth.Limits{}.WithDefaults()}
	change(&f.limits)
	f.guesses = NewGuesses(counter, &oauth.Settings{Keys: oauth.NewKeys(kept{}), Limits: f.limits}, slog.New(slog.DiscardHandler))
	return f
}

func (f *fixture) guess(address string) oauth.Guess {
	f.tokens++
	var token oauth.Fingerprint
	binary.BigEndian.PutUint64(token[:], f.tokens)
	return oauth.Guess{By: oauth.RequesterAt(netip.MustParseAddr(address), f.limits), Token: token, Ticket: hex(int(f.tokens)), Resource: "https://cms.example.com/mcp"}
}

func (f *fixture) admit(guess oauth.Guess, at time.Time) oauth.Admission {
	GinkgoHelper()
	admission, err := f.guesses.Admit(context.Background(), guess, at)
	Expect(err).NotTo(HaveOccurred())
	return admission
}

// try settles an admitted guess.
func (f *fixture) try(guess oauth.Guess, outcome oauth.Outcome, at time.Time) oauth.Admission {
	GinkgoHelper()
	admission := f.admit(guess, at)
	if admission == (oauth.Admission{}) {
		f.guesses.Settle(context.Background(), guess, outcome, at)
	}
	return admission
}

func (f *fixture) fail(times int, address string, at time.Time) {
	GinkgoHelper()
	for range times {
		Expect(f.try(f.guess(address), oauth.Wrong, at)).To(BeZero())
	}
}

var (
	admitted = oauth.Admission{}
	proof    = oauth.Admission{Proof: true}
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
		Expect(f.try(proven, oauth.Wrong, noon)).To(Equal(admitted))
		Expect(f.admit(f.guess(office), noon)).To(Equal(proof))
	})

	It("counts the same wrong token once", func() {
		same := f.guess(office)
		for i := range 30 {
			Expect(f.try(same, oauth.Wrong, noon.Add(time.Duration(i)*rejectedFor))).To(BeZero())
		}
		f.fail(4, office, noon.Add(time.Minute))
		Expect(f.admit(f.guess(office), noon.Add(time.Minute))).To(Equal(proof))
	})

	It("repeats the verdict on a wrong token for five seconds, at the same MCP server only", func() {
		wrong := f.guess(office)
		f.try(wrong, oauth.Wrong, noon)
		Expect(f.admit(wrong, noon.Add(rejectedFor-time.Millisecond)).Wrong).To(BeTrue())
		Expect(f.admit(wrong, noon.Add(rejectedFor)).Wrong).To(BeFalse())
		elsewhere := wrong
		elsewhere.Resource = "https://cms.example.com/files"
		Expect(f.admit(elsewhere, noon).Wrong).To(BeFalse())
		elsewhere.Resource = ""
		f.guesses.Settle(context.Background(), elsewhere, oauth.Wrong, noon)
		Expect(f.admit(elsewhere, noon).Wrong).To(BeFalse(), "an empty connections page is no verdict")
	})

	It("counts what is abandoned, and nothing that is right or undecided", func() {
		for range 30 {
			Expect(f.try(f.guess(office), oauth.Right, noon)).To(BeZero())
			Expect(f.try(f.guess(office), oauth.Undecided, noon)).To(BeZero())
		}
		for range 5 {
			Expect(f.try(f.guess(office), oauth.Abandoned, noon)).To(BeZero())
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(proof))
	})

	DescribeTable("counts by networks with growing limits", func(limit int, address func(i int) string, neighbour, stranger string) {
		for i := range limit {
			Expect(f.try(f.guess(address(i)), oauth.Wrong, noon.Add(time.Duration(i)*time.Second))).To(BeZero())
		}
		at := noon.Add(time.Duration(limit) * time.Second)
		Expect(f.admit(f.guess(neighbour), at)).To(Equal(proof))
		Expect(f.admit(f.guess(stranger), at)).To(Equal(admitted))
	},
		Entry("a /24", 25, func(i int) string { return netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}).String() }, "203.0.113.200", "203.0.114.1"),
		Entry("a /64", 5, func(i int) string { return "2001:db8::" + string(rune('1'+i)) }, "2001:db8::ffff", "2001:db8:0:1::1"),
		Entry("a /56", 25, func(i int) string { return "2001:db8:0:" + hex(i) + "::1" }, "2001:db8:0:ff::1", "2001:db8:0:100::1"),
		Entry("a /48", 125, func(i int) string { return "2001:db8:0:" + hex(i) + "00::1" }, "2001:db8:0:ff00::1", "2001:db8:1::1"),
	)

	It("demands a proof from unknown addresses after a hundred wrong tokens of all in a minute, and refuses no address", func() {
		Expect(f.try(f.guess(other), oauth.Right, noon)).To(BeZero())
		for i := range 100 {
			f.fail(1, netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String(), noon)
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(proof))
		Expect(f.admit(f.guess(other), noon)).To(Equal(admitted), "a right token came from there")
		Expect(f.admit(f.guess(office), noon.Add(time.Minute))).To(Equal(admitted))
	})

	It("keeps thirty attempts a minute for each token with living grants", func() {
		f.fail(5, office, noon)
		holder := f.guess(office)
		holder.Holder = true
		for range f.limits.MaxAttemptsPerToken {
			Expect(f.admit(holder, noon)).To(Equal(admitted))
		}
		Expect(f.admit(holder, noon)).To(Equal(proof))
		Expect(f.admit(holder, noon.Add(2*time.Second))).To(Equal(admitted))
		another := f.guess(office)
		another.Holder = true
		Expect(f.admit(another, noon)).To(Equal(admitted))
	})

	It("does not count a token with living grants against its network", func() {
		f.fail(4, office, noon)
		revoked := f.guess(office)
		revoked.Holder = true
		f.guesses.Settle(context.Background(), revoked, oauth.Wrong, noon)
		f.fail(1, office, noon)
	})

	It("exempts the networks that the operator lists, and counts nothing of theirs", func() {
		f = newFixture(NewMemory(), func(l *oauth.Limits) { l.UnlimitedNetworks = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")} })
		f.fail(200, office, noon)
		Expect(f.admit(f.guess("::ffff:203.0.113.9"), noon)).To(Equal(admitted))
		Expect(f.admit(f.guess(other), noon)).To(Equal(admitted))
	})

	It("takes a proof once", func() {
		Expect(f.guesses.Spend(oauth.Digest{1}, noon)).To(BeTrue())
		Expect(f.guesses.Spend(oauth.Digest{1}, noon)).To(BeFalse())
		Expect(f.guesses.Spend(oauth.Digest{2}, noon)).To(BeTrue())
	})

	It("gives browsers without script a turn every two seconds and address, and five times as often for each larger network", func() {
		take := func(address string, at time.Time) bool { return f.guesses.Turn(f.guess(address).By, at) }
		for range turnBurst {
			Expect(take(office, noon)).To(BeTrue())
		}
		Expect(take(office, noon)).To(BeFalse())
		Expect(take(other, noon)).To(BeTrue())
		Expect(take("203.0.113.8", noon)).To(BeFalse(), "the /24 has used up its turns, too")
		Expect(take("203.0.113.8", noon.Add(2*time.Second/growth))).To(BeTrue())
		Expect(take(office, noon.Add(2*time.Second-time.Millisecond))).To(BeFalse())
		Expect(take(office, noon.Add(2*time.Second))).To(BeTrue())
	})

	It("remembers a bounded number of everything", func() {
		memory := NewMemory()
		f = newFixture(memory, func(l *oauth.Limits) { l.MaxWrongTokens = 1_000_000 })
		for i := range 40_000 {
			guess := f.guess(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}).String())
			f.guesses.Settle(context.Background(), guess, oauth.Wrong, noon)
		}
		Expect(memory.windows.Len()).To(Equal(maxWindows))
		Expect(f.guesses.rejected.Len()).To(Equal(remembered))
		Expect(f.guesses.counted.Len()).To(Equal(remembered))
	})

	It("refuses as unavailable while the windows cannot be read, or have no names", Label("D30"), func() {
		down := errors.New("the database is down")
		f = newFixture(broken{Memory: NewMemory(), reads: down}, func(*oauth.Limits) {})
		_, err := f.guesses.Admit(context.Background(), f.guess(office), noon)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
		Expect(err).To(MatchError(down))
		nameless := NewGuesses(NewMemory(), &oauth.Settings{Keys: oauth.NewKeys(kept{down: down}), Limits: f.limits}, slog.New(slog.DiscardHandler))
		_, err = nameless.Admit(context.Background(), f.guess(office), noon)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
	})

	It("logs a wrong token that cannot be counted", Label("D30"), func() {
		log := new(strings.Builder)
		f = newFixture(broken{Memory: NewMemory(), counts: errors.New("the database is down")}, func(*oauth.Limits) {})
		f.guesses.logger = slog.New(slog.NewTextHandler(log, nil))
		f.guesses.Settle(context.Background(), f.guess(office), oauth.Wrong, noon)
		Expect(log.String()).To(ContainSubstring("the database is down"))
	})

	It("locks no address out for longer than a window when the clock is set back", Label("I23"), func() {
		f.fail(5, office, noon.AddDate(4, 0, 0))
		Expect(f.admit(f.guess(office), noon)).To(Equal(admitted))
	})
})

func hex(i int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[i>>4&15], digits[i&15]})
}

var _ = Describe("Limiting wrong tokens of less than 64 bits", Label("B6", "B19"), func() {
	const office = "203.0.113.7"
	var f *fixture
	BeforeEach(func() { f = newFixture(NewMemory(), func(l *oauth.Limits) { l.WeakTokens = true }) })

	It("refuses an address for the rest of its five minutes, and takes no proof", func() {
		f.fail(5, office, noon)
		refused := f.guess(office)
		refused.Proven, refused.Holder = true, true
		Expect(f.admit(refused, noon.Add(time.Minute))).To(Equal(oauth.Admission{Wait: 4 * time.Minute}))
		Expect(f.admit(f.guess(office), noon.Add(5*time.Minute))).To(Equal(admitted))
	})

	It("refuses a consent page after five wrong tokens, from wherever they come", func() {
		for i := range 5 {
			guess := f.guess(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String())
			guess.Ticket = "one"
			Expect(f.try(guess, oauth.Wrong, noon)).To(BeZero())
		}
		guess := f.guess("198.51.100.1")
		guess.Ticket = "one"
		Expect(f.admit(guess, noon)).To(Equal(oauth.Admission{Wait: time.Hour}))
	})

	It("refuses every address after a hundred wrong tokens in a minute", func() {
		for i := range 100 {
			guess := f.guess(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}).String())
			guess.Ticket = ""
			Expect(f.try(guess, oauth.Wrong, noon)).To(BeZero())
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(oauth.Admission{Wait: time.Minute}))
	})

	It("lets the sixth wait a second while five are checked, and forgets those that were right", func() {
		var pending []oauth.Guess
		for range 5 {
			pending = append(pending, f.guess(office))
			Expect(f.admit(pending[len(pending)-1], noon)).To(Equal(admitted))
		}
		Expect(f.admit(f.guess(office), noon)).To(Equal(oauth.Admission{Wait: time.Second}))
		for _, guess := range pending {
			f.guesses.Settle(context.Background(), guess, oauth.Right, noon)
		}
		Expect(f.guesses.pending).To(BeEmpty())
		f.fail(5, office, noon)
		Expect(f.admit(f.guess(office), noon).Wait).To(Equal(5 * time.Minute))
	})
})
