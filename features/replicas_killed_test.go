package features_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"github.com/onsi/gomega/types"
)

// BeLost matches the response of a proxy or a replica when another replica has died.
func BeLost() types.GomegaMatcher {
	return HaveField("StatusCode", Or(Equal(http.StatusBadGateway), Equal(http.StatusServiceUnavailable)))
}

// Keeper refreshes a grant continuously and records every token.
type Keeper struct {
	*Client
	answered []string // access tokens
	refresh  string   // the last refresh token
}

// keep runs until the context ends. It retries a refresh with the same token when the response was
// lost.
func (k *Keeper) keep(ctx context.Context) {
	defer GinkgoRecover()
	asking := context.WithValue(context.WithoutCancel(ctx), losable{}, true)
	for ctx.Err() == nil {
		answer := k.Token(asking, k.Client.Refresh(k.refresh))
		if answer.StatusCode != http.StatusOK {
			Expect(answer).To(BeLost(), answer.Text)
			continue
		}
		tokens := answer.Tokens()
		k.answered, k.refresh = append(k.answered, tokens.Access), tokens.Refresh
	}
}

// spendTwice logs in and exchanges each code twice at once until the context ends. It returns the
// number of redeemed codes.
func (c *Client) spendTwice(ctx context.Context) (spent int) {
	defer GinkgoRecover()
	asking := context.WithValue(context.WithoutCancel(ctx), losable{}, true)
	for ctx.Err() == nil {
		page := c.AskFor(asking, c.Request())
		if page.StatusCode != http.StatusOK {
			Expect(page).To(BeLost(), page.Text)
			continue
		}
		approved := ReadPage(page).Approve(asking, c.World.Token)
		// A token check in a dying replica counts as a wrong token, and all requests come from one
		// address.
		if approved.StatusCode != http.StatusSeeOther {
			Expect(approved).To(Or(BeLost(), HaveField("StatusCode", http.StatusTooManyRequests)), approved.Text)
			continue
		}
		form := c.Exchange(approved.Target().Query().Get("code"))
		granted := 0
		for _, answer := range atOnce(2, func() Response { return c.Token(asking, form) }) {
			Expect(answer).To(Or(BeGrantedOrRefused(), BeLost()), answer.Text)
			if answer.StatusCode == http.StatusOK {
				granted++
			}
		}
		Expect(granted).To(BeNumerically("<=", 1))
		spent += granted
	}
	return spent
}

// Caller is the Go SDK's client in a program that opens a new session when one has failed.
type Caller struct {
	session  *mcp.ClientSession
	open     func(context.Context) (*mcp.ClientSession, error)
	calls    int
	reopened int
}

// call makes one call, in a new session if there is none.
func (c *Caller) call(ctx context.Context) (err error) {
	if c.session == nil {
		if c.session, err = c.open(ctx); err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		c.reopened++
	}
	if _, err = c.session.CallTool(ctx, &mcp.CallToolParams{Name: "list_articles"}); err != nil {
		go c.session.Close() // may fail, because the replica may be dead
		c.session = nil
		return fmt.Errorf("calling: %w", err)
	}
	c.calls++
	return nil
}

func (f *Fleet) caller(ctx context.Context, published *Client, revision string) *Caller {
	GinkgoHelper()
	var transport func() mcp.Transport
	if revision == httpSSE {
		tokens := published.Connect(ctx)
		transport = func() mcp.Transport {
			return &mcp.SSEClientTransport{Endpoint: f.MCP(),
				HTTPClient: &http.Client{Transport: bearer(tokens.Access)}}
		}
	} else {
		login := f.sdkClientOf(published)
		transport = func() mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: f.MCP(), OAuthHandler: login,
				HTTPClient: &http.Client{Transport: &login.Wire}}
		}
	}
	c := &Caller{open: func(ctx context.Context) (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil)
		return client.Connect(ctx, transport(), &mcp.ClientSessionOptions{ProtocolVersion: revision})
	}}
	Expect(c.call(ctx)).To(Succeed())
	DeferCleanup(func() {
		if c.session != nil {
			_ = c.session.Close()
		}
	})
	return c
}

// dyingEvery kills and restarts one replica after another until the context ends. It returns the
// number of kills.
func (f *Fleet) dyingEvery(ctx context.Context, pause time.Duration) (deaths int) {
	GinkgoHelper()
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for ; ; deaths++ {
		select {
		case <-ctx.Done():
			return deaths
		case <-ticks.C:
			member := f.Replicas[deaths%len(f.Replicas)]
			member.Kill()
			member.Start()
		}
	}
}

var _ = Describe("Killing replicas under load", Label("replicas", "R4", "I14", "I19"), func() {
	for engine := range databaseServers {
		It("loses no issued token, spends no code twice, and every client recovers, on "+engine, func(ctx SpecContext) {
			ForFleets()
			const minute, keepers, spenders, callersOfEach, callLimit = time.Minute, 8, 2, 8, 10 * time.Second
			fleet := NewFleet(BuildBinary(), engine)
			published := fleet.NewClient()
			var kept []*Keeper
			for range keepers {
				tokens := published.Connect(ctx)
				kept = append(kept,
					&Keeper{Client: published, answered: []string{tokens.Access}, refresh: tokens.Refresh})
			}
			var callers []*Caller
			for _, revision := range []string{httpSSE, batching, headers, sessions, stateless} {
				for range callersOfEach {
					callers = append(callers, fleet.caller(ctx, published, revision))
				}
			}

			dying, stop := context.WithTimeout(ctx, minute)
			defer stop()
			var spent atomic.Int64
			var lost atomic.Int64
			var working sync.WaitGroup
			for _, keeper := range kept {
				working.Go(func() { keeper.keep(dying) })
			}
			for range spenders {
				spender := *published
				working.Go(func() { spent.Add(int64(spender.spendTwice(dying))) })
			}
			for _, caller := range callers {
				working.Go(func() {
					defer GinkgoRecover()
					for dying.Err() == nil {
						limited, cancel := context.WithTimeout(context.WithoutCancel(dying), callLimit)
						if caller.call(limited) != nil {
							lost.Add(1)
						}
						cancel()
					}
				})
			}
			deaths := fleet.dyingEvery(dying, 2*time.Second)
			working.Wait()

			answered := 0
			for _, keeper := range kept {
				answered += len(keeper.answered)
				newest := keeper.answered[max(0, len(keeper.answered)-provenTokens):]
				fewAtOnce(len(newest), 16, func(i int) {
					Expect(fleet.Call(ctx, newest[i]).StatusCode).To(Equal(http.StatusOK))
				})
				last := keeper.Token(ctx, keeper.Client.Refresh(keeper.refresh))
				Expect(last.StatusCode).To(Equal(http.StatusOK), last.Text)
			}
			calls, reopened := 0, 0
			for _, caller := range callers {
				calls, reopened = calls+caller.calls, reopened+caller.reopened
				Eventually(func() error {
					limited, cancel := context.WithTimeout(ctx, callLimit)
					defer cancel()
					return caller.call(limited)
				}).WithContext(ctx).WithTimeout(2 * callLimit).Should(Succeed())
			}
			Expect(deaths).To(BeNumerically(">=", 10))
			Expect(answered).To(BeNumerically(">", 100))
			Expect(spent.Load()).To(BeNumerically(">", 10))
			for _, member := range fleet.Replicas {
				Expect(member.run).NotTo(gexec.Exit())
			}
			AddReportEntry("a minute of deaths",
				fmt.Sprintf("%d replicas killed; %d tokens answered, all valid; %d codes spent, none twice; "+
					"%d calls, %d failed, %d sessions opened again, %d clients of %d connected at the end",
					deaths, answered, spent.Load(), calls, lost.Load(), reopened-len(callers), len(callers),
					len(callers)))
		}, NodeTimeout(5*time.Minute))
	}
})
