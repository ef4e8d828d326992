package features_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/quota"
)

// freeGuesses is how many different wrong tokens a network may paste before it takes turns.
const freeGuesses = 10

// office and otherOffice are addresses in two networks.
const office, otherOffice = "203.0.113.7", "198.51.100.7"

// guess pastes a new wrong token.
func (p Page) guess(ctx context.Context, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return p.Approve(ctx, "demo_wrong"+rand.Text(), change...)
}

func (p Page) guesses(address string) func(context.Context) *http.Request {
	return func(ctx context.Context) *http.Request {
		GinkgoHelper()
		wrong := url.Values{"decision": {"approve"}, "bearer_token": {"demo_wrong" + rand.Text()}}
		return formRequest(ctx, p.Action, p.fill(wrong), forwarded(address))
	}
}

// guessesOfConnections is guesses for the connections page.
func (w *World) guessesOfConnections(address string) func(context.Context) *http.Request {
	page := Page{Action: w.Issuer + "/oauth/connections", Hidden: url.Values{}}
	return func(ctx context.Context) *http.Request {
		GinkgoHelper()
		wrong := url.Values{"decision": {"show"}, "bearer_token": {"demo_wrong" + rand.Text()}}
		return formRequest(ctx, page.Action, wrong, forwarded(address))
	}
}

// refusedTurn sends the guesses of one address that make its network slow, and returns the refusal
// of one for which there is no place to wait.
func refusedTurn(ctx context.Context, guess func(context.Context) *http.Request) Response {
	GinkgoHelper()
	for range freeGuesses {
		Expect(Send(guess(ctx)).StatusCode).To(BeElementOf(http.StatusForbidden, http.StatusOK))
	}
	return fillTurns(ctx, guess)
}

// fillTurns is refusedTurn for a network that is slow.
func fillTurns(ctx context.Context, guess func(context.Context) *http.Request) Response {
	GinkgoHelper()
	Expect(Send(guess(ctx)).StatusCode).To(BeElementOf(http.StatusForbidden, http.StatusOK)) // in the first turn
	const mayWait = 4
	waiting, hangUp := context.WithCancel(ctx)
	DeferCleanup(hangUp)
	refused := make(chan Response, mayWait+1)
	for range mayWait + 1 {
		r := guess(waiting)
		go func() {
			answer, err := noRedirects.Do(r)
			if err != nil || answer.StatusCode != http.StatusTooManyRequests {
				return
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			refused <- Response{answer, string(text)}
		}()
	}
	var answer Response
	Eventually(refused).WithContext(ctx).WithTimeout(patience).Should(Receive(&answer))
	return answer
}

// SayWhen matches a refused turn whose page and Retry-After name the same seconds, at most those of
// four turns.
func SayWhen() types.GomegaMatcher {
	return WithTransform(func(r Response) string {
		return r.Header.Get("Retry-After") + " " + regexp.MustCompile(`Try again in \d+ seconds\.`).FindString(r.Text)
	}, MatchRegexp(`^(1 .*\b1 seconds|2 .*\b2 seconds|3 .*\b3 seconds|4 .*\b4 seconds|5 .*\b5 seconds)\.$`))
}

var _ = Describe("Guessing host tokens", Label("B6", "B18", "N5", "stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(behind("127.0.0.1/32"))
		world.Clock.Stop()
		client = world.NewClient()
	})
	guess := func(ctx context.Context, times int, address string) {
		GinkgoHelper()
		page := client.Consent(ctx)
		for range times {
			Expect(page.guess(ctx, forwarded(address)).StatusCode).To(Equal(http.StatusForbidden))
		}
	}
	paste := func(ctx context.Context, token, address string) Response {
		GinkgoHelper()
		return client.Consent(ctx).Approve(ctx, token, forwarded(address))
	}

	It("takes turns in a network after ten wrong tokens, and is refused when too many wait, with a page that says when",
		func(ctx SpecContext) {
			answer := refusedTurn(ctx, client.Consent(ctx).guesses(office))
			Expect(answer).To(SayWhen())
			Expect(answer.Text).To(ContainSubstring("one token a second is checked from there"))
			Expect(paste(ctx, world.Token, otherOffice).StatusCode).To(Equal(http.StatusSeeOther))
			Expect(client.Consent(ctx).Deny(ctx, forwarded(office)).StatusCode).To(Equal(http.StatusSeeOther))
			world.Clock.Advance(5 * time.Minute)
			Expect(paste(ctx, world.Token, office).StatusCode).To(Equal(http.StatusSeeOther))
		}, NodeTimeout(2*time.Minute))

	It("waits for the turn, also with a right token", func(ctx SpecContext) {
		guess(ctx, freeGuesses+1, office)
		Expect(paste(ctx, world.Token, office).StatusCode).To(Equal(http.StatusSeeOther), "after a second")
		Expect(world.Log.String()).NotTo(ContainSubstring("too many wrong tokens"))
	})

	It("never slows a token that has connected before", func(ctx SpecContext) {
		Expect(paste(ctx, world.Token, otherOffice).StatusCode).To(Equal(http.StatusSeeOther))
		refusedTurn(ctx, client.Consent(ctx).guesses(office))
		Expect(paste(ctx, world.Token, office).StatusCode).To(Equal(http.StatusSeeOther))
		Expect(world.Connections(ctx, world.Token, forwarded(office)).grants()).NotTo(BeEmpty())
	}, NodeTimeout(2*time.Minute))

	It("counts the pages together", func(ctx SpecContext) {
		guess := world.guessesOfConnections(office)
		for range freeGuesses {
			Expect(Send(guess(ctx)).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(fillTurns(ctx, client.Consent(ctx).guesses(office)).StatusCode).To(Equal(http.StatusTooManyRequests))
	}, NodeTimeout(2*time.Minute))

	It("ignores an X-Forwarded-For that no trusted proxy sends", func(ctx SpecContext) {
		operated := Operate()
		world, client = operated.World, operated.World.NewClient()
		world.Clock.Stop()
		for i := range freeGuesses {
			guess(ctx, 1, fmt.Sprintf("203.%d.113.7", i))
		}
		guess(ctx, 2, otherOffice) // the second one waits
		Expect(operated.AskAdmin(ctx, "/metrics").Text).
			To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 1`))
	})

	It("slows no other network, and counts the same wrong token once", func(ctx SpecContext) {
		page := client.Consent(ctx)
		for range 3 * freeGuesses {
			Expect(page.Approve(ctx, "demo_mistyped", forwarded(office)).StatusCode).To(Equal(http.StatusForbidden))
		}
		guess(ctx, freeGuesses-1, office)
		for i := range 30 {
			guess(ctx, 3, fmt.Sprintf("10.%d.1.1", i))
		}
		Expect(paste(ctx, world.Token, "192.0.2.1").StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("accepts a token that became valid, five seconds after its refusal", func(ctx SpecContext) {
		page := client.Consent(ctx)
		Expect(page.Approve(ctx, "demo_soon").StatusCode).To(Equal(http.StatusForbidden))
		Expect(world.Site().EnsureEditorToken("demo_soon")).Error().NotTo(HaveOccurred())
		Expect(page.Approve(ctx, "demo_soon").StatusCode).To(Equal(http.StatusForbidden))
		world.Clock.Advance(5 * time.Second)
		Expect(page.Approve(ctx, "demo_soon").StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("never limits the networks that the operator lists", func(ctx SpecContext) {
		world = NewWorld(behind("127.0.0.1/32"), func(config *service.Config) {
			config.Limits.UnlimitedNetworks = append(config.Limits.UnlimitedNetworks,
				netip.MustParsePrefix("203.0.113.0/24"))
		})
		client = world.NewClient()
		world.Clock.Stop()
		guess(ctx, 5*freeGuesses, office)
	})

	It("counts neither right nor empty tokens", Label("B5", "B7"), func(ctx SpecContext) {
		for i := range 2 * freeGuesses {
			page := client.Consent(ctx)
			Expect(page.Approve(ctx, " ").StatusCode).To(Equal(http.StatusBadRequest))
			token := world.TokenFor(ctx, fmt.Sprint("person ", i), demosite.Author)
			Expect(page.Approve(ctx, token).StatusCode).To(Equal(http.StatusSeeOther))
		}
		guess(ctx, freeGuesses, "127.0.0.1")
	})

	It("has the verifier check at most one guess a second of a network, even of those that come at the same moment",
		Label("race"), func(ctx SpecContext) {
			var checked atomic.Int64
			site := NewClientSite()
			site.Serve("/token", func(w http.ResponseWriter, _ *http.Request) {
				checked.Add(1)
				w.WriteHeader(http.StatusUnauthorized)
			})
			world = NewWorld(behind("127.0.0.1/32"), func(config *service.Config) {
				config.Verification = overHTTP.configure(site.URL("/token"))
			})
			guess := world.NewClient().Consent(ctx).guesses(office)
			impatient, hangUp := context.WithTimeout(ctx, 3*time.Second)
			defer hangUp()
			began := time.Now()
			var guessing sync.WaitGroup
			for n := range 60 {
				guessing.Go(func() {
					r := guess(impatient)
					r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
					if answer, err := noRedirects.Do(r); err == nil {
						_ = answer.Body.Close()
					}
				})
			}
			guessing.Wait()
			turns := int64(time.Since(began).Seconds()) + 1
			Expect(checked.Load()).To(And(BeNumerically(">=", 1), BeNumerically("<=", freeGuesses+turns)))
		})
})

var _ = Describe("Unknown tokens of one address", Label("D31"), func() {
	const unknown = "ppr_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	world := EachWorld(behind("127.0.0.1/32"))
	var client *Client
	BeforeEach(func() {
		world.Clock.Stop()
		client = world.NewClient()
	})
	from := func(ctx context.Context, address string, form url.Values) Response {
		return client.Token(ctx, form, forwarded(address))
	}
	exhaust := func(ctx context.Context) {
		GinkgoHelper()
		for range quota.UnknownTokensPerMinute {
			Expect(from(ctx, office, client.Refresh(unknown))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		}
		Expect(from(ctx, office, client.Refresh(unknown)).StatusCode).To(Equal(http.StatusTooManyRequests))
	}

	It("are refused above the limit until the next one is allowed, without affecting other addresses",
		func(ctx SpecContext) {
			exhaust(ctx)
			world.Clock.Advance(time.Second / 4)
			for _, form := range []url.Values{client.Refresh(unknown), client.Refresh("garbage"),
				client.Exchange("garbage")} {
				refused := from(ctx, office, form)
				Expect(refused).To(BeRefusedAs(http.StatusTooManyRequests, "temporarily_unavailable"))
				Expect(refused.Header.Get("Retry-After")).To(Equal("1"))
			}
			Expect(from(ctx, "203.0.113.8", client.Refresh(unknown))).
				To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			world.Clock.Advance(time.Second)
			Expect(from(ctx, office, client.Refresh(unknown))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			Expect(from(ctx, office, client.Refresh(unknown)).StatusCode).To(Equal(http.StatusTooManyRequests))
		})

	It("do not affect exchanges and refreshes with known tokens", func(ctx SpecContext) {
		exhaust(ctx)
		exchanged := from(ctx, office, client.Exchange(client.Authorize(ctx)))
		Expect(exchanged.StatusCode).To(Equal(http.StatusOK), exchanged.Text)
		Expect(from(ctx, office, client.Refresh(exchanged.Tokens().Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("do not include a known token that is refused",
		func(ctx SpecContext, refused func(context.Context) url.Values) {
			form := refused(ctx)
			for range 2 * quota.UnknownTokensPerMinute {
				Expect(from(ctx, office, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			}
			exhaust(ctx)
			Expect(from(ctx, office, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		},
		Entry("with a wrong verifier", func(ctx context.Context) url.Values {
			form := client.Exchange(client.Authorize(ctx))
			form.Set("code_verifier", "another-verifier-that-is-long-enough-for-the-rules")
			return form
		}),
		Entry("because its grant has ended", func(ctx context.Context) url.Values {
			revoked := client.Connect(ctx).Refresh
			client.Revoke(ctx, revoked)
			return client.Refresh(revoked)
		}),
	)

	It("do not include malformed requests", func(ctx SpecContext) {
		for range quota.UnknownTokensPerMinute {
			for _, name := range []string{"refresh_token", "grant_type", "client_id"} {
				form := client.Refresh(unknown)
				form.Del(name)
				Expect(from(ctx, office, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_request"))
			}
		}
	})

	It("appear in the trace with what to do", Label("trace"), func(ctx SpecContext) {
		exhaust(ctx)
		Eventually(func() string {
			return Run(ctx, append([]string{"trace"}, world.Kept()...)...).Out
		}).WithContext(ctx).WithTimeout(patience).
			Should(And(ContainSubstring("D31"), ContainSubstring("unlimited-networks")))
	})
})

var _ = Describe("Ending every grant of an office", Label("D31", "I12"), func() {
	It("lets all of its clients reconnect immediately from one address", func(ctx SpecContext) {
		const clients = 150
		world := NewWorld(behind("127.0.0.1/32"), func(config *service.Config) {
			config.Limits.MaxGrantsPerToken = 2 * clients
		})
		client := world.NewClient()
		held := make([]string, 0, clients)
		for range clients {
			held = append(held, client.Connect(ctx).Refresh)
		}
		ended := Run(ctx, append([]string{"grants", "end", "--all", "--yes"}, world.Kept()...)...)
		Expect(ended.Out).To(HaveSuffix(fmt.Sprintf("ended: %d\n", clients)), ended.Err)
		fromOffice := forwarded(office)
		for _, token := range held {
			Expect(client.Token(ctx, client.Refresh(token), fromOffice)).
				To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			again := client.Token(ctx, client.Exchange(client.Authorize(ctx)), fromOffice)
			Expect(again.StatusCode).To(Equal(http.StatusOK), again.Text)
		}
	})
})
