package features_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"golang.org/x/sync/errgroup"
)

var _ = Describe("Running replicas", Label("replicas"), func() {
	for engine := range databaseServers {
		Context("on "+engine, Ordered, ContinueOnFailure, func() {
			var fleet *Fleet
			BeforeAll(func() {
				ForFleets()
				fleet = NewFleet(BuildBinary(), engine)
			})

			DescribeTable("returns the same newest tokens for sixteen refreshes, spread over all replicas, of",
				Label("I15", "D27"), func(ctx SpecContext, generations, rounds int) {
					client := fleet.NewClient()
					tokens := client.Connect(ctx)
					for range rounds {
						held := []string{tokens.Refresh}
						for range generations - 1 {
							tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
							held = append(held, tokens.Refresh)
						}
						spread := map[int]func() Response{}
						for i := range crowd {
							at := *client
							at.World = fleet.At(i)
							form := client.Refresh(held[i%len(held)])
							spread[i] = func() Response { return at.Token(ctx, form) }
						}
						answers := together(spread)
						for _, replaced := range held {
							answers[len(answers)] = client.Token(ctx, client.Refresh(replaced))
						}
						tokens = answers[len(answers)-1].Tokens()
						newest := append(held[1:], tokens.Refresh) // the last one before the race, and after it
						for i, answer := range answers {
							Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
							Expect(newest[max(0, len(newest)-2):]).To(ContainElement(answer.Tokens().Refresh))
							Expect(fleet.callAt(ctx, i+1, answer.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
							if i >= len(spread) {
								Expect(answer.Tokens().Refresh).To(Equal(tokens.Refresh))
							}
						}
					}
				},
				Entry("one token", NodeTimeout(5*time.Minute), 1, 100),
				Entry("three generations", NodeTimeout(5*time.Minute), 3, 30),
			)

			It("refuses the tokens of a grant that was ended at one replica, at the others within 1.5 seconds",
				Label("E9", "G7"), func(ctx SpecContext) {
					// Batch is one less than the limit of concurrent token checks per address.
					const rounds, batch = 1000, 4
					client := fleet.NewClient()
					for first := 0; first < rounds; first += batch {
						var rounding sync.WaitGroup
						for round := first; round < first+batch; round++ {
							rounding.Go(func() {
								defer GinkgoRecover()
								tokens := client.Connect(ctx)
								for i := range fleet.Replicas { // each replica has it in its cache
									Expect(fleet.callAt(ctx, i, tokens.Access).StatusCode).To(Equal(http.StatusOK))
								}
								at := *client
								at.World = fleet.At(round)
								Expect(at.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
								Expect(at.World.Call(ctx, tokens.Access)).To(BeChallenged(fleet.World, "invalid_token"))
								within := time.Now().Add(1500 * time.Millisecond)
								for i := range fleet.Replicas {
									Eventually(func() Response { return fleet.callAt(ctx, i, tokens.Access) }).
										WithTimeout(max(time.Until(within), time.Millisecond)).
										Should(BeChallenged(fleet.World, "invalid_token"))
								}
							})
						}
						rounding.Wait()
					}
				}, NodeTimeout(5*time.Minute))

			It("closes the streams of a grant that was ended at one replica within a second at all replicas",
				Label("E9", "G16"), func(ctx SpecContext) {
					for at := range fleet.Replicas {
						client := fleet.NewClient()
						tokens := client.Connect(ctx)
						var open []*Stream
						for i := range fleet.Replicas {
							legacy := fleet.At(i).Converse(ctx, httpSSE, tokens.Access)
							open = append(open, legacy.Listen(ctx),
								fleet.At(i+1).Converse(ctx, sessions, tokens.Access).Listen(ctx))
						}
						ending := *client
						ending.World = fleet.At(at)
						Expect(ending.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
						within := time.Now().Add(time.Second)
						for _, stream := range open {
							Eventually(stream.Events).WithTimeout(max(time.Until(within), time.Millisecond)).
								Should(BeClosed())
						}
					}
				}, NodeTimeout(time.Minute))

			It("responds with 503 only while the database restarts, and recovers afterwards",
				Label("D30", "G11", "E10", "N14"), func(ctx SpecContext) {
					client := fleet.NewClient()
					tokens := client.Connect(ctx)
					load := fleet.underLoad(ctx, client, tokens)
					Eventually(load.Answers).WithTimeout(patience).
						Should(HaveKeyWithValue(http.StatusOK, BeNumerically(">", 100)))
					Expect(fleet.Server.Stop()).To(Succeed())
					Eventually(load.Answers).WithTimeout(patience).
						Should(HaveKeyWithValue(http.StatusServiceUnavailable, BeNumerically(">", 20)))
					Expect(fleet.Server.Start(ctx)).To(Succeed())
					back := time.Now()
					load.Recovered(ctx, back.Add(2*time.Second))
					Expect(load.Stop()).
						To(And(HaveLen(2), HaveKey(http.StatusOK), HaveKey(http.StatusServiceUnavailable)))
					fresh := client.Token(ctx, client.Refresh(tokens.Refresh))
					Expect(fresh.StatusCode).To(Equal(http.StatusOK), fresh.Text)
				}, NodeTimeout(5*time.Minute))
		})
	}
})

// Load records the responses to continuous calls of every replica.
type Load struct {
	mu       sync.Mutex
	answers  map[int]int // number of responses by status
	failures time.Time   // start of the last call that failed
	stop     context.CancelFunc
	callers  sync.WaitGroup
}

// underLoad calls the MCP server and the token endpoint of every replica until the load is stopped.
func (f *Fleet) underLoad(ctx context.Context, client *Client, tokens Tokens) *Load {
	ctx, stop := context.WithCancel(ctx)
	load := &Load{answers: map[int]int{}, stop: stop}
	for i := range 4 * len(f.Replicas) {
		at := *client
		at.World = f.At(i)
		refreshing := client.Refresh(tokens.Refresh)
		load.callers.Go(func() {
			defer GinkgoRecover()
			for ctx.Err() == nil {
				began := time.Now()
				if i%4 == 0 {
					load.count(began, at.Token(context.WithoutCancel(ctx), refreshing))
					continue
				}
				load.count(began, at.World.Call(context.WithoutCancel(ctx), tokens.Access))
			}
		})
	}
	DeferCleanup(stop)
	return load
}

func (l *Load) count(began time.Time, answer Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[answer.StatusCode]++
	if answer.StatusCode != http.StatusOK && began.After(l.failures) {
		l.failures = began
	}
}

// Answers returns the number of responses by status.
func (l *Load) Answers() map[int]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := map[int]int{}
	for status, count := range l.answers {
		copied[status] = count
	}
	return copied
}

// Recovered waits until that time, and checks that no later call failed.
func (l *Load) Recovered(ctx context.Context, since time.Time) {
	GinkgoHelper()
	Eventually(func() time.Time {
		return time.Now()
	}).WithContext(ctx).WithTimeout(patience).Should(BeTemporally(">", since.Add(time.Second)))
	l.mu.Lock()
	defer l.mu.Unlock()
	Expect(l.failures).To(BeTemporally("<", since))
}

// Stop ends the load and returns the responses.
func (l *Load) Stop() map[int]int {
	l.stop()
	l.callers.Wait()
	return l.answers
}

// fewAtOnce runs a function for all items, a few at a time. A failure ends its item only, so that
// the others are still reported.
func fewAtOnce(all, few int, act func(i int)) {
	var working errgroup.Group
	working.SetLimit(few)
	for i := range all {
		working.Go(func() error {
			defer GinkgoRecover()
			act(i)
			return nil
		})
	}
	_ = working.Wait()
}

// logins is one less than the limit of concurrent token checks per address.
const logins = 4

var _ = Describe("Using replicas behind a proxy without sticky sessions", Label("replicas", "R1"), Ordered,
	ContinueOnFailure, func() {
		const connections = 200
		var fleet *Fleet
		BeforeAll(func() {
			ForFleets()
			fleet = NewFleet(BuildBinary(), "PostgreSQL")
		})

		DescribeTable("works with the Go SDK's client in revision", func(ctx SpecContext, revision string) {
			published := fleet.NewClient()
			sessions := make([]*mcp.ClientSession, connections)
			fewAtOnce(connections, logins, func(i int) { sessions[i] = fleet.connect(ctx, published, revision) })
			for range 2 {
				fewAtOnce(connections, 32, func(i int) {
					listed := must(sessions[i].CallTool(ctx, &mcp.CallToolParams{Name: "list_articles"}))
					Expect(listed.IsError).To(BeFalse())
				})
			}
			fewAtOnce(connections, 32, func(i int) { Expect(sessions[i].Close()).To(Succeed()) })
		}, revisions())

		It("works with the TypeScript SDKs' clients over every transport and in every revision", func(ctx SpecContext) {
			interop := must(filepath.Abs("interop"))
			command := Binary(filepath.Join(interop, "node_modules", ".bin", "node")).
				Command([]string{"NODE_EXTRA_CA_CERTS=" + fleet.Clients.Certificate()},
					filepath.Join(interop, "replicas.js"), fleet.MCP(), fleet.NewClient().ID, fmt.Sprint(connections))
			command.Stdin = strings.NewReader(fleet.Token)
			run := must(gexec.Start(command, GinkgoWriter, GinkgoWriter))
			DeferCleanup(func() { run.Kill().Wait(patience) })
			Eventually(run).WithContext(ctx).WithTimeout(10 * time.Minute).Should(gexec.Exit(0))
			AddReportEntry("clients", string(run.Out.Contents()))
		}, NodeTimeout(10*time.Minute))
	})

var _ = Describe("Using replicas of a gateway to a program", Label("replicas", "gateway", "R1", "R4"), func() {
	It("needs no sticky sessions, and a killed replica ends only its own sessions", func(ctx SpecContext) {
		ForFleets()
		const connections = 60
		to := stdioProgram()
		fleet := NewFleet(BuildBinary(), "PostgreSQL", "gateway", "--verifier", "file", "--token-file",
			peopleOfPrograms(ctx), "--upstream", "stdio: API_KEY={token} "+to.Command+" "+programWord,
			"--stdio-max-processes", fmt.Sprint(20*connections))
		fleet.Token = adaKey
		published := fleet.NewClient()
		all, pids := make([]*mcp.ClientSession, connections), make([]int, connections)
		call := func(i int, tool string) (string, error) {
			arguments := map[string]any{"text": "hello"}
			called, err := all[i].CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
			if err != nil {
				return "", err
			}
			return called.Content[0].(*mcp.TextContent).Text, nil
		}
		fewAtOnce(connections, logins, func(i int) { all[i] = fleet.connect(ctx, published, sessions) })
		for range 3 {
			fewAtOnce(connections, 16, func(i int) {
				pid, _ := strconv.Atoi(must(call(i, "pid")))
				Expect(pids[i]).To(BeElementOf(0, pid), "the session stays in its process")
				pids[i] = pid
			})
		}
		killed := fleet.Replicas[1]
		left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
			return parentOf(pid) == killed.run.Command.Process.Pid
		})
		Expect(len(left)).To(And(BeNumerically(">", 0), BeNumerically("<", connections)))
		killed.Kill()
		Eventually(func() int { return len(survivors(pids)()) }).WithTimeout(patience).Should(Equal(len(left)))
		fewAtOnce(connections, 16, func(i int) {
			text, err := call(i, "shout")
			if slices.Contains(left, pids[i]) {
				Expect(err).NotTo(HaveOccurred())
				Expect(text).To(Equal("HELLO"))
				return
			}
			Expect(err).To(HaveOccurred())
			all[i] = fleet.connect(ctx, published, sessions)
			Expect(call(i, "shout")).To(Equal("HELLO"))
		})
		AddReportEntry("a killed replica", fmt.Sprintf("%d of %d sessions were in it and began anew",
			connections-len(left), connections))
	}, NodeTimeout(10*time.Minute))
})

func parentOf(pid int) (parent int) {
	GinkgoHelper()
	stat := must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))
	must(fmt.Sscan(strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))[1], &parent))
	return parent
}

// connect logs in and opens a session.
func (f *Fleet) connect(ctx context.Context, published *Client, revision string) *mcp.ClientSession {
	GinkgoHelper()
	if revision == httpSSE {
		tokens := published.Connect(ctx)
		return ConnectSDK(ctx, revision,
			&mcp.SSEClientTransport{Endpoint: f.MCP(), HTTPClient: &http.Client{Transport: bearer(tokens.Access)}})
	}
	return f.sdkClientOf(published).Connect(ctx, revision)
}
