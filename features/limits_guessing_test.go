package features_test

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// easyProofs makes proofs of work cheap, for specs that need many.
func easyProofs(config *service.Config) { config.Limits.ProofBits = 1 }

// weakTokens sets the limits for tokens that can be guessed.
func weakTokens(config *service.Config) { config.Limits.WeakTokens = true }

var proofAttribute = regexp.MustCompile(`data-(challenge|bits|iterations|wait)="([^"]*)"`)

// Demand is the page that demands a proof of work before the token is checked.
type Demand struct {
	Page
	Challenge              string
	Bits, Iterations, Wait int
}

// ReadDemand expects the page that demands a proof of work.
func ReadDemand(answer Response) Demand {
	GinkgoHelper()
	Expect(answer.StatusCode).To(Equal(http.StatusTooManyRequests), answer.Text)
	d := Demand{Page: ReadPage(answer)}
	found := map[string]string{}
	for _, attribute := range proofAttribute.FindAllStringSubmatch(answer.Text, -1) {
		found[attribute[1]] = attribute[2]
	}
	number := func(name string) int {
		value, err := strconv.Atoi(found[name])
		Expect(err).NotTo(HaveOccurred(), answer.Text)
		return value
	}
	d.Challenge, d.Bits, d.Iterations, d.Wait = found["challenge"], number("bits"), number("iterations"), number("wait")
	return d
}

// Solve finds a nonce, as the script of the page does.
func (d Demand) Solve() string {
	GinkgoHelper()
	for nonce := 0; ; nonce++ {
		key, err := pbkdf2.Key(sha256.New, strconv.Itoa(nonce), []byte(d.Challenge), d.Iterations, 4)
		Expect(err).NotTo(HaveOccurred())
		if bits.LeadingZeros32(binary.BigEndian.Uint32(key)) >= d.Bits {
			return strconv.Itoa(nonce)
		}
	}
}

// Send sends the form with a nonce, or "" for a browser that has waited.
func (d Demand) Send(ctx context.Context, nonce string, change ...func(*http.Request)) Response {
	GinkgoHelper()
	form := url.Values{}
	for name, values := range d.Hidden {
		form[name] = values
	}
	form.Set("nonce", nonce)
	return Post(ctx, d.Action, form, change...)
}

// guess pastes a new wrong token.
func (p Page) guess(ctx context.Context, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return p.Approve(ctx, "demo_wrong"+rand.Text(), change...)
}

var _ = Describe("Guessing host tokens", Label("B6", "B18", "N5", "stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(easyProofs, behind("127.0.0.1/32"))
		client = world.NewClient()
	})
	here, elsewhere := forwarded("203.0.113.7"), forwarded("203.0.113.8")
	wrong := func(ctx context.Context, times int, from func(*http.Request)) {
		GinkgoHelper()
		page := client.Consent(ctx)
		for range times {
			Expect(page.guess(ctx, from).StatusCode).To(Equal(http.StatusForbidden))
		}
	}
	right := func(ctx context.Context, from func(*http.Request)) Response {
		GinkgoHelper()
		return client.Consent(ctx).Approve(ctx, world.Token, from)
	}

	It("demands a proof of work after five wrong tokens from one address, for right and wrong tokens alike",
		func(ctx SpecContext) {
			wrong(ctx, 5, here)
			demand := ReadDemand(right(ctx, here))
			Expect(demand.Header.Get("Retry-After")).To(Equal("20"))
			Expect(demand.Wait).To(Equal(20))
			Expect(demand.Text).NotTo(ContainSubstring(world.Token))
			Expect(demand.Send(ctx, demand.Solve(), here).StatusCode).To(Equal(http.StatusSeeOther))

			demand = ReadDemand(client.Consent(ctx).guess(ctx, here))
			Expect(demand.Send(ctx, demand.Solve(), here).StatusCode).To(Equal(http.StatusForbidden))

			world.Clock.Advance(5 * time.Minute)
			Expect(right(ctx, here).StatusCode).To(Equal(http.StatusSeeOther))
		})

	It("demands no proof from other addresses, nor for a denial", Label("B5"), func(ctx SpecContext) {
		wrong(ctx, 5, here)
		Expect(right(ctx, elsewhere).StatusCode).To(Equal(http.StatusSeeOther))
		Expect(client.Consent(ctx).Deny(ctx, here).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("ignores an X-Forwarded-For that no trusted proxy sends", func(ctx SpecContext) {
		world = NewWorld(easyProofs)
		client = world.NewClient()
		wrong(ctx, 5, here)
		ReadDemand(right(ctx, elsewhere))
	})

	It("accepts the form of a browser without script once, after the wait, and repeats the demand before",
		func(ctx SpecContext) {
			wrong(ctx, 5, here)
			demand := ReadDemand(right(ctx, here))
			world.Clock.Advance(12 * time.Second)
			early := ReadDemand(demand.Send(ctx, "", here))
			Expect(early.Wait).To(Equal(8))
			Expect(early.Hidden).To(Equal(demand.Hidden), "the same place in the queue")
			world.Clock.Advance(8 * time.Second)
			answer := demand.Send(ctx, "", here)
			Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)

			demand = ReadDemand(client.Consent(ctx).guess(ctx, here))
			Expect(demand.Wait).To(Equal(20))
			world.Clock.Advance(20 * time.Second)
			Expect(demand.Send(ctx, "", here).StatusCode).To(Equal(http.StatusForbidden))
			world.Clock.Advance(5 * time.Second) // the verdict is no longer repeated
			ReadDemand(demand.Send(ctx, "", here))
		})

	It("accepts a proof once, and only for its form and its token", func(ctx SpecContext) {
		wrong(ctx, 5, here)
		demand := ReadDemand(client.Consent(ctx).guess(ctx, here))
		nonce := demand.Solve()
		Expect(demand.Send(ctx, nonce, here).StatusCode).To(Equal(http.StatusForbidden))
		world.Clock.Advance(5 * time.Second) // the verdict on this token is no longer repeated
		ReadDemand(demand.Send(ctx, nonce, here))

		another := ReadDemand(right(ctx, here))
		another.Hidden.Set("ticket", client.Consent(ctx).Hidden.Get("ticket"))
		Expect(another.Send(ctx, another.Solve(), here).StatusCode).To(Equal(http.StatusBadRequest))
		Expect(world.Log.String()).NotTo(ContainSubstring("grant_created"))

		old := ReadDemand(right(ctx, here))
		world.Clock.Advance(5*time.Minute - time.Millisecond)
		wrong(ctx, 5, here)
		world.Clock.Advance(time.Millisecond)
		Expect(old.Send(ctx, old.Solve(), here).StatusCode).To(Equal(http.StatusBadRequest))
	})

	It("refuses an invalid nonce", func(ctx SpecContext) {
		world = NewWorld(behind("127.0.0.1/32"), func(config *service.Config) { config.Limits.ProofBits = 16 })
		client = world.NewClient()
		wrong(ctx, 5, here)
		demand := ReadDemand(right(ctx, here))
		for _, nonce := range []string{"1", "12345678901234567890", "\x00", "-1"} {
			ReadDemand(demand.Send(ctx, nonce, here))
		}
	})

	It("counts the same wrong token once", func(ctx SpecContext) {
		page := client.Consent(ctx)
		for range 30 {
			Expect(page.Approve(ctx, "demo_mistyped").StatusCode).To(Equal(http.StatusForbidden))
		}
		Expect(right(ctx, forwarded()).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("accepts a token that became valid, five seconds after its refusal", func(ctx SpecContext) {
		page := client.Consent(ctx)
		Expect(page.Approve(ctx, "demo_soon").StatusCode).To(Equal(http.StatusForbidden))
		_, err := world.Site().EnsureEditorToken(ctx, "demo_soon")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Approve(ctx, "demo_soon").StatusCode).To(Equal(http.StatusForbidden))
		world.Clock.Advance(5 * time.Second)
		Expect(page.Approve(ctx, "demo_soon").StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("demands no proof for a token with active connections", func(ctx SpecContext) {
		client.Connect(ctx)
		wrong(ctx, 5, here)
		Expect(right(ctx, here).StatusCode).To(Equal(http.StatusSeeOther))
		Expect(world.Connections(ctx, world.Token, here).grants()).NotTo(BeEmpty())
		world.Connections(ctx, world.Token).End(ctx, "")
		ReadDemand(right(ctx, here))
	})

	It("never limits the networks that the operator lists", func(ctx SpecContext) {
		world = NewWorld(behind("127.0.0.1/32"), func(config *service.Config) {
			config.Limits.UnlimitedNetworks = append(config.Limits.UnlimitedNetworks,
				netip.MustParsePrefix("203.0.113.0/24"))
		})
		client = world.NewClient()
		wrong(ctx, 30, here)
		Expect(right(ctx, here).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("counts demands in the metrics", Label("operations"), func(ctx SpecContext) {
		operated := Operate(easyProofs, behind("127.0.0.1/32"))
		world, client = operated.World, operated.World.NewClient()
		Expect(operated.AskAdmin(ctx, "/metrics").Text).
			To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 0`))
		wrong(ctx, 5, here)
		ReadDemand(right(ctx, here))
		Expect(operated.AskAdmin(ctx, "/metrics").Text).
			To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 1`))
	})

	It("counts neither right nor empty tokens", Label("B5", "B7"), func(ctx SpecContext) {
		for range 6 {
			page := client.Consent(ctx)
			Expect(page.Approve(ctx, " ").StatusCode).To(Equal(http.StatusBadRequest))
			Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
		}
	})
})

var _ = Describe("Guessing host tokens of less than 64 bits", Label("B6", "B19", "N5", "stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(weakTokens, behind("127.0.0.1/32"))
		client = world.NewClient()
	})

	It("refuses every token from an address for the rest of five minutes", func(ctx SpecContext) {
		for range 5 {
			Expect(client.Consent(ctx).guess(ctx).StatusCode).To(Equal(http.StatusForbidden))
		}
		page := client.Consent(ctx)
		answer := page.Approve(ctx, world.Token)
		Expect(answer.StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(answer.Header.Get("Retry-After")).To(MatchRegexp(`^(2\d\d|300)$`))
		Expect(answer.Text).To(ContainSubstring("Too many tokens were tried from here."))
		Expect(page.Deny(ctx).StatusCode).To(Equal(http.StatusSeeOther))
		Expect(world.Connections(ctx, world.Token).StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(page.Approve(ctx, world.Token, forwarded("203.0.113.8")).StatusCode).To(Equal(http.StatusSeeOther))

		world.Clock.Advance(5 * time.Minute)
		Expect(client.Consent(ctx).Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("counts guesses that come at the same moment", func(ctx SpecContext) {
		pages := make(chan Page, 20)
		for range cap(pages) {
			pages <- client.Consent(ctx)
		}
		answers := atOnce(cap(pages), func() Response { return (<-pages).guess(ctx) })
		forbidden := 0
		for _, answer := range answers {
			if answer.StatusCode == http.StatusForbidden {
				forbidden++
			}
		}
		Expect(forbidden).To(And(BeNumerically(">", 0), BeNumerically("<=", 5)))
		for range 5 - forbidden {
			Expect(client.Consent(ctx).guess(ctx).StatusCode).To(Equal(http.StatusForbidden))
		}
		Expect(client.Consent(ctx).guess(ctx).StatusCode).To(Equal(http.StatusTooManyRequests))
	})

	It("demands no proof", Label("B18"), func(ctx SpecContext) {
		for range 5 {
			client.Consent(ctx).guess(ctx)
		}
		Expect(client.Consent(ctx).guess(ctx).Text).NotTo(ContainSubstring("data-challenge"))
	})
})
