package features_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// innocent are people who connect, each with their own token.
type innocent struct {
	*World
	client        *Client
	atOnce, after int // attempts that were checked without and with a proof of work
}

// paste submits the consent page from an address, with a proof if one is demanded.
func (c *innocent) paste(ctx context.Context, page Page, token, address string) int {
	GinkgoHelper()
	answer := page.Approve(ctx, token, forwarded(address))
	if answer.StatusCode != http.StatusTooManyRequests {
		c.atOnce++
		return answer.StatusCode
	}
	demand := ReadDemand(answer)
	c.after++
	return demand.Send(ctx, demand.Solve(), forwarded(address)).StatusCode
}

// connect pastes some wrong tokens and then the right one.
func (c *innocent) connect(ctx context.Context, person, mistakes int, address string) {
	GinkgoHelper()
	page := c.client.Consent(ctx)
	for range mistakes {
		Expect(c.paste(ctx, page, "demo_mistyped"+rand.Text(), address)).To(Equal(http.StatusForbidden))
	}
	token := c.TokenFor(ctx, "person "+strconv.Itoa(person), demosite.Author)
	Expect(c.paste(ctx, page, token, address)).To(Equal(http.StatusSeeOther))
}

// waitWithoutScript connects one more person, whose browser runs no scripts, and returns the
// waiting time.
func (c *innocent) waitWithoutScript(ctx context.Context, address string) time.Duration {
	GinkgoHelper()
	answer := c.client.Consent(ctx).Approve(ctx, c.TokenFor(ctx, "no script", demosite.Author), forwarded(address))
	if answer.StatusCode == http.StatusSeeOther {
		return 0
	}
	demand := ReadDemand(answer)
	wait := time.Duration(demand.Wait) * time.Second
	c.Clock.Advance(wait)
	Expect(demand.Send(ctx, "", forwarded(address)).StatusCode).To(Equal(http.StatusSeeOther))
	return wait
}

// guesses sends wrong tokens and ignores every demand.
func (c *innocent) guesses(ctx context.Context, times int, address func(i int) string) {
	GinkgoHelper()
	page := c.client.Consent(ctx)
	for i := range times {
		page.guess(ctx, forwarded(address(i)))
	}
}

const office = "203.0.113.7"

func always(address string) func(int) string { return func(int) string { return address } }

// ipv6 returns an address in the i-th /64 of one /48, and ipv4 one in the i-th /24.
func ipv6(i int) string {
	return netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 0, 1, byte(i >> 8), byte(i), 15: 1}).String()
}

func ipv4(i int) string { return fmt.Sprintf("10.%d.%d.1", i>>8, i&255) }

var _ = Describe("Innocent people during attacks", Label("B6", "B18", "N5"), func() {
	var people *innocent
	BeforeEach(func() {
		world := NewWorld(easyProofs, behind("127.0.0.1/32"))
		people = &innocent{World: world, client: world.NewClient()}
	})

	// The last three columns are the attempts accepted immediately, the attempts accepted after a
	// proof of work (about half a second in a browser), and the wait of one more person, whose
	// browser runs no scripts.
	DescribeTable("connects all people", func(ctx SpecContext, attack func(ctx context.Context), number, mistakes int,
		from func(int) string, atOnce, after int, wait time.Duration) {
		attack(ctx)
		for i := range number {
			people.connect(ctx, i, mistakes, from(i))
		}
		Expect(people.atOnce).To(Equal(atOnce))
		Expect(people.after).To(Equal(after))
		Expect(people.waitWithoutScript(ctx, from(number))).To(Equal(wait))
	},
		Entry("on a quiet day", func(context.Context) {}, 30, 0, always(office), 30, 0, 0*time.Second),
		Entry("of a class of thirty who mistype twice", func(context.Context) {}, 30, 2, always(office), 7, 83,
			20*time.Second),
		Entry("of a hundred behind a carrier's address, when ten strangers there have mistyped once",
			func(ctx context.Context) {
				people.guesses(ctx, 10, always(office))
			}, 100, 0, always(office), 0, 100, 20*time.Second),
		Entry("of a thousand behind a carrier's address, when ten strangers there have mistyped once", Label("soak"),
			func(ctx context.Context) {
				people.guesses(ctx, 10, always(office))
			}, 1000, 0, always(office), 0, 1000, 20*time.Second),
		Entry("of an office with an attacker in it",
			func(ctx context.Context) {
				people.guesses(ctx, 300, always(office))
			}, 10, 1, always(office), 0, 20, 20*time.Second),
		Entry("of another office at that time",
			func(ctx context.Context) {
				people.guesses(ctx, 300, always("198.51.100.9"))
			}, 10, 0, always(office), 10, 0, 0*time.Second),
		Entry("of a home beside an attacker with a /48",
			func(ctx context.Context) {
				people.guesses(ctx, 300, ipv6)
			}, 10, 0, func(i int) string { return "2001:db8:2::" + strconv.Itoa(i+1) }, 10, 0, 0*time.Second),
		Entry("from unknown addresses during the attack of a botnet of a thousand",
			func(ctx context.Context) {
				people.guesses(ctx, 1000, ipv4)
			}, 10, 0, func(i int) string { return "198.51." + strconv.Itoa(i) + ".1" }, 0, 10, 20*time.Second),
	)

	It("demands no proof during the attack of a botnet from an address that has sent a right token",
		func(ctx SpecContext) {
			people.connect(ctx, 1, 0, office)
			people.guesses(ctx, 1000, ipv4)
			people.connect(ctx, 2, 0, office)
			Expect(people.atOnce).To(Equal(2))
		})
})
