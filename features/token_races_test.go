package features_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// crowd is the number of callers of a race.
const crowd = 16

// BeGrantedOrRefused matches the possible responses to the callers of a race to the token endpoint.
func BeGrantedOrRefused() types.GomegaMatcher {
	return Or(HaveField("StatusCode", http.StatusOK), BeRefusedAs(400, "invalid_grant"))
}

var _ = Describe("Racing", Label("N10", "stores"), func() {
	Context("in 20 rounds", Label("race"), func() { converging(20) })
	Context("in 20 rounds", Label("long", "race"), func() { racing(20) })
	Context("in 100 rounds", Label("soak"), func() { racing(100) })
	Context("in 100,000 requests", Label("soak", "flood"), func() { converging(100_000 / 2 / crowd) })
})

// expectAllDead checks that no token issued in a race works.
func (c *Client) expectAllDead(ctx context.Context, told []Response) {
	GinkgoHelper()
	for _, answer := range told {
		Expect(answer).To(BeGrantedOrRefused())
		if answer.StatusCode != http.StatusOK {
			continue
		}
		tokens := answer.Tokens()
		Expect(c.World.Call(ctx, tokens.Access)).To(BeChallenged(c.World, "invalid_token"))
		if tokens.Refresh != "" {
			Expect(c.Token(ctx, c.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		}
	}
}

// converging races equal requests. Each round is one race of exchanges and one of refreshes.
func converging(rounds int) {
	world := EachWorld()
	client := world.EachClient()

	It("sixteen exchanges of one code succeeds once, and a later replay ends the grant",
		Label("I14", "D19", "D20"), func(ctx SpecContext) {
			for range rounds {
				form := client.Exchange(client.Authorize(ctx))
				var granted []Response
				for _, answer := range atOnce(crowd, func() Response { return client.Token(ctx, form) }) {
					Expect(answer).To(BeGrantedOrRefused())
					if answer.StatusCode == http.StatusOK {
						granted = append(granted, answer)
					}
				}
				Expect(granted).To(HaveLen(1))
				Expect(world.Call(ctx, granted[0].Tokens().Access).StatusCode).To(
					Equal(http.StatusOK), "the losers do not end the grant")
				world.Clock.Advance(11 * time.Second)
				Expect(client.Token(ctx, form)).To(BeRefusedAs(400, "invalid_grant"))
				client.expectAllDead(ctx, granted)
			}
			AddReportEntry("exchanges", rounds*crowd)
		}, NodeTimeout(30*time.Minute))

	It("sixteen refreshes with one token returns the same tokens", Label("I15", "D27"), func(ctx SpecContext) {
		refresh := client.Connect(ctx).Refresh
		for range rounds {
			successors, accesses := map[string]bool{}, map[string]bool{}
			form := client.Refresh(refresh)
			for _, answer := range atOnce(crowd, func() Response { return client.Token(ctx, form) }) {
				Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
				successors[answer.Tokens().Refresh], accesses[answer.Tokens().Access] = true, true
				refresh = answer.Tokens().Refresh
			}
			Expect(successors).To(HaveLen(1))
			Expect(accesses).To(HaveLen(1))
		}
		AddReportEntry("refreshes", rounds*crowd)
	}, NodeTimeout(30*time.Minute))
}

func racing(rounds int) {
	world := EachWorld()
	client := world.EachClient()

	// against runs two kinds of callers concurrently, half of the callers each, and returns the
	// responses to the first kind.
	against := func(these, those func() Response) (told []Response) {
		calls := map[int]func() Response{}
		for i := range crowd {
			calls[i] = these
			if i%2 > 0 {
				calls[i] = those
			}
		}
		for i, answer := range together(calls) {
			if i%2 == 0 {
				told = append(told, answer)
			}
		}
		return told
	}
	endGrantsOf := func(ctx context.Context, token string) {
		GinkgoHelper()
		Expect(world.EndGrantsOf(ctx, token)).Error().NotTo(HaveOccurred())
	}

	It("refreshes against a revocation leaves no valid token after the response to the revocation",
		Label("I16", "E6", "E9"), func(ctx SpecContext) {
			for range rounds {
				tokens := client.Connect(ctx)
				refresh := func() Response { return client.Token(ctx, client.Refresh(tokens.Refresh)) }
				told := against(refresh, func() Response {
					Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
					late := refresh()
					Expect(late).To(BeRefusedAs(400, "invalid_grant"))
					return late
				})
				client.expectAllDead(ctx, told)
				Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
			}
		}, SpecTimeout(5*time.Minute))

	It("calls at two replicas against a revocation at one leaves no valid token there, and soon none anywhere",
		Label("E9", "G7", "I22"), func(ctx SpecContext) {
			both := []*World{world, {Issuer: world.Replica().Address}}
			ok := HaveField("StatusCode", http.StatusOK)
			for round := range rounds {
				tokens := client.Connect(ctx)
				for _, at := range both { // each keeps the grant in its cache
					Expect(at.Call(ctx, tokens.Access)).To(ok)
				}
				answering := both[round%2]
				var turn atomic.Int64
				against(func() Response { return both[turn.Add(1)%2].Call(ctx, tokens.Access) }, func() Response {
					Expect(Post(ctx, answering.Issuer+"/oauth/revoke", url.Values{"token": {tokens.Refresh}})).To(ok)
					for range crowd {
						late := answering.Call(ctx, tokens.Access)
						Expect(late).To(BeChallenged(world, "invalid_token"), "a call after the response")
					}
					return Response{}
				})
				for _, at := range both {
					Eventually(func() Response { return at.Call(ctx, tokens.Access) }).WithContext(ctx).
						WithTimeout(patience).Should(BeChallenged(world, "invalid_token"))
				}
			}
		}, SpecTimeout(5*time.Minute))

	It("refreshes against the reuse of a replaced token leaves no valid token",
		Label("I17", "D27"), func(ctx SpecContext) {
			for range rounds {
				stolen := client.Connect(ctx)
				next := client.Token(ctx, client.Refresh(stolen.Refresh)).Tokens()
				next = client.Token(ctx, client.Refresh(next.Refresh)).Tokens()
				world.Clock.Advance(6 * time.Minute)
				told := against(func() Response {
					return client.Token(ctx, client.Refresh(next.Refresh))
				}, func() Response {
					reused := client.Token(ctx, client.Refresh(stolen.Refresh))
					Expect(reused).To(BeRefusedAs(400, "invalid_grant"))
					return reused
				})
				client.expectAllDead(ctx, told)
				Expect(world.Call(ctx, next.Access)).To(BeChallenged(world, "invalid_token"))
			}
		}, SpecTimeout(5*time.Minute))

	It("refreshes against revocation by the site leaves no valid token", Label("I17", "J10"), func(ctx SpecContext) {
		for range rounds {
			host := world.TokenFor(ctx, "ada", demosite.Author)
			tokens := client.ConnectAs(ctx, host)
			refresh := func() Response { return client.Token(ctx, client.Refresh(tokens.Refresh)) }
			told := against(refresh, func() Response {
				endGrantsOf(ctx, host)
				late := refresh()
				Expect(late).To(BeRefusedAs(400, "invalid_grant"))
				return late
			})
			client.expectAllDead(ctx, told)
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		}
	}, SpecTimeout(5*time.Minute))

	It("exchanges against revocation by the site leaves no valid token or code",
		Label("I17", "I8", "J10", "D21"), func(ctx SpecContext) {
			for i := range rounds {
				host := world.TokenFor(ctx, "ada", demosite.Author)
				scope := []string{"mcp", "mcp offline_access"}[i%2]
				approved := client.Consent(ctx, set("scope", scope)).Approve(ctx, host)
				form := client.Exchange(approved.Target().Query().Get("code"))
				told := against(func() Response { return client.Token(ctx, form) }, func() Response {
					endGrantsOf(ctx, host)
					late := client.Token(ctx, form)
					Expect(late).To(BeRefusedAs(400, "invalid_grant"))
					return late
				})
				client.expectAllDead(ctx, told)
			}
		}, SpecTimeout(5*time.Minute))
}

var _ = Describe("Losing the response to a refresh", Label("N11", "D27", "I19", "stores"), func() {
	world := EachWorld()
	client := world.EachClient()
	var old string
	var lost Tokens
	BeforeEach(func(ctx SpecContext) {
		old = client.Connect(ctx).Refresh
		lost = client.loseAnswer(ctx, client.Refresh(old)).Tokens()
		Expect(lost.Refresh).NotTo(Or(BeEmpty(), Equal(old)))
	})

	It("is recovered by a retry with the old token, which returns the same tokens", func(ctx SpecContext) {
		again := client.Token(ctx, client.Refresh(old))
		Expect(again.StatusCode).To(Equal(http.StatusOK), again.Text)
		Expect(again.Tokens().Refresh).To(Equal(lost.Refresh))
		Expect(again.Tokens().Access).To(Equal(lost.Access))
		Expect(world.Call(ctx, again.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("is recovered also after a restart of the service", Label("J9"), func(ctx SpecContext) {
		world.Restart()
		Expect(client.Token(ctx, client.Refresh(old)).Tokens().Refresh).To(Equal(lost.Refresh))
	})

	It("is recovered however late, while nothing of the answer was used", func(ctx SpecContext) {
		for _, late := range []time.Duration{68 * time.Second, time.Hour, 7 * 24 * time.Hour} {
			world.Clock.Advance(late)
			Expect(client.Token(ctx, client.Refresh(old)).Tokens().Refresh).To(Equal(lost.Refresh))
		}
	})
})

// loseAnswer sends a form over a separate connection, which breaks before the client has read the
// response; only the spec sees it.
func (c *Client) loseAnswer(ctx context.Context, form map[string][]string) Response {
	GinkgoHelper()
	wire := must((&net.Dialer{}).DialContext(ctx, "tcp", c.World.Issuer[len("http://"):]))
	r := (&Connection{Client: c}).request(ctx, http.MethodPost, "/oauth/token", form)
	Expect(r.Write(wire)).To(Succeed())
	seen := must(http.ReadResponse(bufio.NewReader(wire), r))
	Expect(seen.StatusCode).To(Equal(http.StatusOK))
	Expect(wire.(*net.TCPConn).SetLinger(0)).To(Succeed()) // close with a reset
	text := must(io.ReadAll(seen.Body))
	Expect(wire.Close()).To(Succeed())
	return Response{seen, string(text)}
}
