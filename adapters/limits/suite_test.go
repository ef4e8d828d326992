package limits

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/features/suite"
)

func TestLimits(t *testing.T) {
	suite.Run(t, "Limits")
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
	f.guesses = NewGuesses(counter, &oauth.Settings{Keys: seal.NewKeyRing(kept{}), Limits: f.limits},
		slog.New(slog.DiscardHandler))
	return f
}

func (f *fixture) guess(address string) oauth.Guess {
	f.tokens++
	var token oauth.Fingerprint
	binary.BigEndian.PutUint64(token[:], f.tokens)
	return oauth.Guess{
		By:       oauth.RequesterAt(netip.MustParseAddr(address), f.limits),
		Token:    token,
		Ticket:   hex(int(f.tokens)),
		Resource: "https://cms.example.com/mcp",
	}
}

func (f *fixture) admit(guess oauth.Guess, at time.Time) oauth.Admission {
	GinkgoHelper()
	admission, err := f.guesses.Admit(context.Background(), guess, at)
	Expect(err).NotTo(HaveOccurred())
	return admission
}

// try asks for admission, and settles the guess if it is admitted.
func (f *fixture) try(guess oauth.Guess, outcome oauth.GuessResult, at time.Time) oauth.Admission {
	GinkgoHelper()
	admission := f.admit(guess, at)
	if admission == (oauth.Admission{}) {
		f.guesses.RecordResult(context.Background(), guess, outcome, at)
	}
	return admission
}

func (f *fixture) fail(times int, address string, at time.Time) {
	GinkgoHelper()
	for range times {
		Expect(f.try(f.guess(address), oauth.GuessWrong, at)).To(BeZero())
	}
}

var (
	admitted = oauth.Admission{}
	proof    = oauth.Admission{NeedsProof: true}
)

func hex(i int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[i>>4&15], digits[i&15]})
}
