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
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"golang.org/x/sync/errgroup"
)

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

// bearing adds a bearer token to each request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

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
					listed, err := sessions[i].CallTool(ctx, &mcp.CallToolParams{Name: "list_articles"})
					Expect(err).NotTo(HaveOccurred())
					Expect(listed.IsError).To(BeFalse())
				})
			}
			fewAtOnce(connections, 32, func(i int) { Expect(sessions[i].Close()).To(Succeed()) })
		}, revisions())

		It("works with the TypeScript SDKs' clients over every transport and in every revision", func(ctx SpecContext) {
			interop, err := filepath.Abs("interop")
			Expect(err).NotTo(HaveOccurred())
			command := Binary(filepath.Join(interop, "node_modules", ".bin", "node")).
				Command([]string{"NODE_EXTRA_CA_CERTS=" + fleet.Clients.Certificate()},
					filepath.Join(interop, "replicas.js"), fleet.MCP(), fleet.NewClient().ID, fmt.Sprint(connections))
			command.Stdin = strings.NewReader(fleet.Token)
			run, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
			Expect(err).NotTo(HaveOccurred())
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
				text, err := call(i, "pid")
				Expect(err).NotTo(HaveOccurred())
				pid, _ := strconv.Atoi(text)
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

// parentOf returns the process that has started another.
func parentOf(pid int) (parent int) {
	GinkgoHelper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Sscan(strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))[1], &parent)
	Expect(err).NotTo(HaveOccurred())
	return parent
}

// connect logs in and opens a session.
func (f *Fleet) connect(ctx context.Context, published *Client, revision string) *mcp.ClientSession {
	GinkgoHelper()
	if revision == httpSSE {
		tokens := published.Connect(ctx)
		return ConnectSDK(ctx, revision,
			&mcp.SSEClientTransport{Endpoint: f.MCP(), HTTPClient: &http.Client{Transport: bearing(tokens.Access)}})
	}
	return f.sdkClientOf(published).Connect(ctx, revision)
}
