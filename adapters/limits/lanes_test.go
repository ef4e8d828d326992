package limits

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
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
	guess := func(address string) oauth.Guess {
		tokens++
		g := oauth.Guess{By: oauth.RequesterAt(netip.MustParseAddr(address), oauth.Limits{}), AtOnce: true}
		binary.BigEndian.PutUint64(g.Token[:], tokens)
		return g
	}
	check := func(g oauth.Guess, result oauth.GuessResult) error {
		leave, err := lanes.Enter(context.Background(), g)
		if err == nil {
			leave(result)
		}
		return err
	}
	wrong := func(times int, address string) {
		GinkgoHelper()
		for range times {
			Expect(check(guess(address), oauth.GuessWrong)).To(Succeed())
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
			Expect(check(guess(office), oauth.GuessRight)).To(Succeed(), "the first turn")
			Expect(waitOf(check(guess(colleague), oauth.GuessRight))).To(Equal(time.Second))
			now = now.Add(time.Second)
		}
	})

	It("count a /56 of IPv6 as one network", func() {
		for i := range free {
			wrong(1, fmt.Sprintf("2001:db8:0:%x::1", i))
		}
		Expect(check(guess("2001:db8::1"), oauth.GuessRight)).To(Succeed())
		Expect(check(guess("2001:db8:0:ff::1"), oauth.GuessRight)).NotTo(Succeed())
		Expect(check(guess("2001:db8:0:100::1"), oauth.GuessRight)).To(Succeed())
	})

	It("give a network one of its wrong tokens back every half a minute", func() {
		wrong(free, office)
		now = now.Add(wrongTokensIn / free)
		wrong(1, office)
		Expect(check(guess(office), oauth.GuessRight)).To(Succeed(), "a turn")
		Expect(check(guess(office), oauth.GuessRight)).NotTo(Succeed())
		now = now.Add(wrongTokensIn)
		wrong(free, office)
	})

	It("never slow a token that was right within 30 days", func() {
		known := guess(office)
		Expect(check(known, oauth.GuessRight)).To(Succeed())
		wrong(free, office)
		wrong(1, office) // the turn of this second
		Expect(check(known, oauth.GuessRight)).To(Succeed())
		now = now.Add(knownFor)
		wrong(free, office)
		wrong(1, office)
		Expect(check(known, oauth.GuessRight)).NotTo(Succeed())
	})

	It("know a token at the server that knows it, and on the connections page", func() {
		token := guess(office)
		token.Resource = "https://cms.example/one"
		Expect(check(token, oauth.GuessRight)).To(Succeed())
		wrong(free+1, office)
		Expect(check(token, oauth.GuessRight)).To(Succeed())
		token.Resource = ""
		Expect(check(token, oauth.GuessRight)).To(Succeed())
		token.Resource = "https://cms.example/two"
		Expect(check(token, oauth.GuessRight)).NotTo(Succeed())
	})

	It("know a token that was checked without a lane", func() {
		token := guess(office)
		token.Resource = "https://cms.example/one"
		lanes.Remember(token.Token, token.Resource)
		wrong(free+1, office)
		Expect(check(token, oauth.GuessRight)).To(Succeed())
	})

	It("check a token that is wrong at one server at another", func() {
		token := guess(office)
		token.Resource = "https://cms.example/one"
		Expect(check(token, oauth.GuessWrong)).To(Succeed())
		token.Resource = "https://cms.example/two"
		Expect(check(token, oauth.GuessRight)).To(Succeed())
	})

	It("count no outage", func() {
		for range 3 * free {
			Expect(check(guess(office), oauth.GuessUndecided)).To(Succeed())
		}
	})

	It("check no more tokens of a network at once than may be wrong", func(ctx SpecContext) {
		var leaves []func(oauth.GuessResult)
		for range free {
			leave, err := lanes.Enter(ctx, guess(office))
			Expect(err).NotTo(HaveOccurred())
			leaves = append(leaves, leave)
		}
		Expect(waitOf(check(guess(office), oauth.GuessRight))).To(Equal(turn), "a client does not wait")
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
		leaves[0](oauth.GuessRight)
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
			Expect(check(guess(address), []oauth.GuessResult{oauth.GuessWrong, oauth.GuessRight}[i%2])).To(Succeed())
		}
		Expect(lanes.networks.Len()).To(Equal(maxKeys))
		Expect(lanes.wrong.Len() + lanes.right.Len()).To(BeNumerically("<=", maxKeys+maxRight))
	})
})
