package throttle

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// book notes what is counted and given back, or is down.
type book struct {
	taken, given []oauth.Window
	at           []time.Time
	wait         time.Duration
	down         error
	patient      bool // it could still ask when it was told to give back
}

func (b *book) Take(_ context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
	b.taken, b.at = append(b.taken, windows...), append(b.at, now)
	return b.wait, b.down
}

func (b *book) GiveBack(ctx context.Context, taken time.Time, windows ...oauth.Window) error {
	_, limited := ctx.Deadline()
	b.given, b.at, b.patient = append(b.given, windows...), append(b.at, taken), ctx.Err() == nil && limited
	return b.down
}

func (b *book) SharedByReplicas() bool { return true }

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

var _ = Describe("Limiting guesses of several processes", Label("B6", "I22"), func() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var store *book
	var log strings.Builder
	guesses := func(k kept) *SharedGuesses {
		return NewSharedGuesses(store, oauth.NewKeys(k), slog.New(slog.NewTextHandler(&log, nil)))
	}
	BeforeEach(func() { store, log = &book{}, strings.Builder{} })
	counted := func(address, ticket string) []oauth.Window {
		GinkgoHelper()
		store.taken = nil
		_, _, err := guesses(kept{}).Attempt(context.Background(), address, ticket, noon)
		Expect(err).NotTo(HaveOccurred())
		return store.taken
	}

	It("counts a guess for its address, for its consent page and altogether, with the same limits as one process", func() {
		Expect(counted("203.0.113.7", "t")).To(ConsistOf(
			And(HaveField("Limit", 5), HaveField("Length", 5*time.Minute)),
			And(HaveField("Limit", 100), HaveField("Length", time.Minute)),
			And(HaveField("Limit", 5), HaveField("Length", time.Hour)),
		))
		Expect(counted("203.0.113.7", "")).To(HaveLen(2), "a page without a ticket has no window")
	})

	It("calls its windows by names that differ for each, and that nobody can make without the server secret", func() {
		names := map[oauth.Digest]bool{}
		for _, w := range append(counted("a", "t"), counted("t", "a")...) {
			names[w.Name] = true
		}
		Expect(names).To(HaveLen(5), "only the one for everybody is the same")
		mine := counted("a", "t")
		_, _, err := guesses(kept{secret: 1}).Attempt(context.Background(), "a", "t", noon)
		Expect(err).NotTo(HaveOccurred())
		for i, other := range store.taken[3:] {
			Expect(other.Name).NotTo(Equal(mine[i].Name))
		}
	})

	It("gives a right guess back, as it was taken, even when its person has hung up, and a wrong one never", func() {
		ctx, hangUp := context.WithCancel(context.Background())
		settle, wait, err := guesses(kept{}).Attempt(ctx, "a", "t", noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(wait).To(BeZero())
		settle(true)
		Expect(store.given).To(BeEmpty())
		hangUp()
		settle(false)
		Expect(store.given).To(Equal(store.taken))
		Expect(store.at).To(HaveEach(noon))
		Expect(store.patient).To(BeTrue())
		Expect(log.String()).To(BeEmpty())
	})

	It("says how long to wait when there is no place", func() {
		store.wait = time.Minute
		settle, wait, err := guesses(kept{}).Attempt(context.Background(), "a", "t", noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(wait).To(Equal(time.Minute))
		Expect(settle).To(BeNil())
	})

	DescribeTable("lets nobody guess while nobody can count", Label("D30", "N14"), func(fail func(k *kept)) {
		var k kept
		fail(&k)
		settle, _, err := guesses(k).Attempt(context.Background(), "a", "t", noon)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
		Expect(settle).To(BeNil())
	},
		Entry("because the store is down", func(*kept) { store.down = errors.New("down") }),
		Entry("because the server secret cannot be read", func(k *kept) { k.down = errors.New("down") }),
	)

	It("counts a right guess as a wrong one when it cannot be given back, and says so", func() {
		settle, _, err := guesses(kept{}).Attempt(context.Background(), "a", "t", noon)
		Expect(err).NotTo(HaveOccurred())
		store.down = errors.New("the disk is on fire")
		settle(false)
		Expect(log.String()).To(And(ContainSubstring("level=ERROR"), ContainSubstring("the disk is on fire")))
	})
})
