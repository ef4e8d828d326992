package limits

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
	"github.com/pasteport/pasteport/features/suite"
)

var _ = Describe("The lanes of pasted tokens", Label("B6", "B18"), func() {
	const office, colleague, elsewhere = "203.0.113.7", "203.0.113.8", "198.51.100.7"
	const free = 10
	var lanes *Lanes
	var now time.Time
	var tokens uint64
	BeforeEach(func() {
		now = noon
		lanes = NewLanes(free, func() time.Time { return now }, nil)
	})
	// guess is a guess of a client, which does not wait for a turn, with a new token.
	guess := func(address string) quota.Guess {
		tokens++
		g := quota.Guess{By: quota.RequesterAt(netip.MustParseAddr(address), nil), AtOnce: true}
		binary.BigEndian.PutUint64(g.Token[:], tokens)
		return g
	}
	check := func(g quota.Guess, result quota.Result) error {
		leave, err := lanes.Enter(context.Background(), g)
		if err == nil {
			leave(result)
		}
		return err
	}
	wrong := func(times int, address string) {
		GinkgoHelper()
		for range times {
			Expect(check(guess(address), quota.Wrong)).To(Succeed())
		}
	}
	waitOf := func(err error) time.Duration {
		GinkgoHelper()
		var refusal *oauth.Error
		Expect(errors.As(err, &refusal)).To(BeTrue(), "%v", err)
		Expect(refusal.Kind).To(Equal(oauth.TooManyGuesses))
		return refusal.RetryAfter
	}
	// waitFor lets people paste tokens, and returns when all of them wait.
	waitFor := func(ctx context.Context, addresses ...string) {
		GinkgoHelper()
		var in *lane
		lanes.mu.Lock()
		in = lanes.laneOf(guess(office).By, now)
		before := len(in.waiting)
		lanes.mu.Unlock()
		for _, address := range addresses {
			person := guess(address)
			person.AtOnce = false
			go func() { _, _ = lanes.Enter(ctx, person) }()
		}
		Eventually(func() int {
			lanes.mu.Lock()
			defer lanes.mu.Unlock()
			return len(in.waiting)
		}).Should(Equal(before + len(addresses)))
	}

	It("check one token a second of a network that has presented ten different wrong ones", func() {
		wrong(free-1, office)
		wrong(1, colleague)
		for range 3 {
			Expect(check(guess(office), quota.Right)).To(Succeed(), "the first turn")
			Expect(waitOf(check(guess(colleague), quota.Right))).To(Equal(time.Second))
			now = now.Add(time.Second)
		}
	})

	It("count a /56 of IPv6 as one network", func() {
		for i := range free {
			wrong(1, fmt.Sprintf("2001:db8:0:%x::1", i))
		}
		Expect(check(guess("2001:db8::1"), quota.Right)).To(Succeed())
		Expect(check(guess("2001:db8:0:ff::1"), quota.Right)).NotTo(Succeed())
		Expect(check(guess("2001:db8:0:100::1"), quota.Right)).To(Succeed())
	})

	It("never slow a token that was right within 30 days", func() {
		known := guess(office)
		Expect(check(known, quota.Right)).To(Succeed())
		wrong(free, office)
		wrong(1, office) // the turn of this second
		Expect(check(known, quota.Right)).To(Succeed())
		now = now.Add(knownFor)
		wrong(free, office)
		wrong(1, office)
		Expect(check(known, quota.Right)).NotTo(Succeed())
	})

	It("check no more tokens of a network at once than may be wrong", func(ctx SpecContext) {
		var leaves []func(quota.Result)
		for range free {
			leave, err := lanes.Enter(ctx, guess(office))
			Expect(err).NotTo(HaveOccurred())
			leaves = append(leaves, leave)
		}
		Expect(waitOf(check(guess(office), quota.Right))).To(Equal(turn), "a client does not wait")
		person := guess(office)
		person.AtOnce = false
		gone, hangUp := context.WithCancel(ctx)
		hangUp()
		_, err := lanes.Enter(gone, person)
		Expect(err).To(MatchError(context.Canceled))
		entered := make(chan error, 1)
		go func() {
			_, err := lanes.Enter(ctx, person)
			entered <- err
		}()
		leaves[0](quota.Right)
		Eventually(entered).WithContext(ctx).Should(Receive(Succeed()))
	})

	It("let at most sixteen tokens of a network wait for a turn, and four of one address", func(ctx SpecContext) {
		wrong(free+1, office)
		waiting, hangUp := context.WithCancel(ctx)
		waitFor(waiting, office, office, office, office)
		person := guess(office)
		person.AtOnce = false
		_, err := lanes.Enter(ctx, person)
		Expect(waitOf(err)).To(Equal(5 * time.Second))
		var more []string
		for i := range maxWaiting - maxWaitingPerAddress {
			more = append(more, fmt.Sprintf("203.0.113.%d", 100+i))
		}
		waitFor(waiting, more...)
		person = guess(colleague)
		person.AtOnce = false
		_, err = lanes.Enter(ctx, person)
		Expect(waitOf(err)).To(Equal((maxWaiting + 1) * time.Second))

		hangUp()
		_, err = lanes.Enter(ctx, person)
		Expect(waitOf(err)).To(Equal((maxWaiting+1)*time.Second), "a canceled request keeps its place")
	}, NodeTimeout(time.Minute))

	It("slow no network for longer when the clock is set back", Label("I23"), func() {
		now = now.AddDate(4, 0, 0)
		wrong(free+1, office)
		now = noon
		wrong(free, office)
	})

	It("remember a bounded number of networks and tokens", func() {
		for i := range 40_000 {
			address := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}).String()
			Expect(check(guess(address), []quota.Result{quota.Wrong, quota.Right}[i%2])).To(Succeed())
		}
		Expect(lanes.networks.Len()).To(Equal(maxKeys))
		Expect(lanes.wrong.Len() + lanes.right.Len()).To(BeNumerically("<=", maxKeys+maxRight))
	})
})

var _ = Describe("Limiting unknown tokens", Label("D31"), func() {
	It("starts again when the clock is set back", Label("I23"), func() {
		limit, one := NewRates(), quota.Rate{Of: "a", Events: 1, PerMinute: 1}
		Expect(limit.Take(noon, one)).To(BeZero())
		Expect(limit.Take(noon.Add(-maxClockDifference), one)).NotTo(BeZero())
		Expect(limit.Take(noon.AddDate(-4, 0, 0), one)).To(BeZero())
	})

	It("remembers a limited number of addresses", func() {
		limit := NewRates()
		for key := range maxKeys + 1 {
			Expect(limit.Take(noon, quota.Rate{Of: fmt.Sprint(key), Events: 1, PerMinute: 1})).To(BeZero())
		}
		Expect(limit.buckets.Len()).To(Equal(maxKeys))
	})
})

var _ = Describe("Limiting fetches", Label("C21"), func() {
	const host, other = "client.example", "other.example"
	var fetches *Rates
	BeforeEach(func() { fetches = NewRates() })
	wait := func(address, host string) time.Duration {
		return fetches.Take(noon, requesterAt(address).Fetch(host)...)
	}
	// spent takes fetches until one is refused, and returns their number.
	spent := func(from func(i int) string, host string) (taken int) {
		for taken < 100 && wait(from(taken), host) == 0 {
			taken++
		}
		return taken
	}
	always := func(address string) func(int) string { return func(int) string { return address } }

	It("allows a network 30 in a minute from all hosts, and takes none from others", func() {
		Expect(spent(func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }, host)).To(Equal(30))
		Expect(wait("203.0.113.1", other)).To(Equal(2 * time.Second))
		Expect(spent(always("198.51.100.1"), host)).To(Equal(30), "refused ones do not count for the host")
		Expect(fetches.Take(noon.Add(2*time.Second), requesterAt("203.0.113.1").Fetch(other)...)).To(BeZero())
	})

	It("allows 60 in a minute from a host to all networks, also to those without limits", func() {
		Expect(spent(always(""), host)).To(Equal(60))
		Expect(wait("203.0.113.1", host)).To(Equal(time.Second))
		Expect(wait("203.0.113.1", other)).To(BeZero())
	})

	It("counts no fetch for a network that the limit of the host refuses", func() {
		Expect(spent(always(""), host)).To(Equal(60))
		for range 100 {
			Expect(wait("203.0.113.1", host)).To(Equal(time.Second))
		}
		Expect(spent(always("203.0.113.1"), other)).To(Equal(30))
	})
})

// requesterAt returns the requester at an address, one without limits for "".
func requesterAt(address string) quota.Requester {
	parsed, _ := netip.ParseAddr(address)
	return quota.RequesterAt(parsed, nil)
}

func TestLimits(t *testing.T) { suite.Run(t, "Limits") }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
