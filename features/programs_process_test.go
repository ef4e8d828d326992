package features_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("The process of a program over stdio", Label("gateway"), func() {
	Context("limits", Label("U25"), func() {
		It("the processes of a person, and ends the idlest", Label("G20"), func(ctx SpecContext) {
			world := openProgram(ctx, nil, programLimits(func(l *bootstrap.GatewayConfig) { l.MaxProcesses = 40 }))
			access := connectedTo(ctx, world)
			var talks []*Conversation
			var pids []int
			for range 3 {
				talk := world.Converse(ctx, sessions, access)
				talks, pids = append(talks, talk), append(pids, pidOf(ctx, talk))
			}
			Eventually(survivors(pids)).Should(Equal(pids[1:]))
			Expect(talks[0].Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		})

		It("the processes of all people", Label("G20"), func(ctx SpecContext) {
			world := openProgram(ctx, nil, programLimits(func(l *bootstrap.GatewayConfig) { l.MaxProcesses = 1 }))
			first := pidOf(ctx, world.Converse(ctx, sessions, connectedTo(ctx, world)))
			world.Token = bobKey
			second := pidOf(ctx, world.Converse(ctx, sessions, connectedTo(ctx, world)))
			Eventually(survivors([]int{first, second})).Should(Equal([]int{second}))
		})

		It("the memory and processor time of a process, and allows no core file", func(ctx SpecContext) {
			world := openProgram(ctx, nil, programLimits(func(l *bootstrap.GatewayConfig) {
				l.Memory = 1 << 30
			}))
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			Expect(talk.Use(ctx, "limits", params{}).Text()).To(Equal("0 1073741824 3600 "))
		})

		It("the length of a message", func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			pid := pidOf(ctx, talk)
			Expect(talk.Use(ctx, "endless", params{}).Text()).To(ContainSubstring("it sent a message that is too long"))
			Eventually(survivors([]int{pid})).Should(BeEmpty())
		})

		It("what it logs of stderr, and leaves out lines with the key", Label("U23"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			talk.Use(ctx, "complain", params{"text": "a usual line"})
			talk.Use(ctx, "complain", params{"text": "the key is " + adaKey})
			encoded := []string{
				fmt.Sprintf("%X", adaKey), base64.StdEncoding.EncodeToString([]byte("ada:" + adaKey)),
			}
			for _, line := range encoded {
				talk.Use(ctx, "complain", params{"text": "the key is " + line})
			}
			talk.Use(ctx, "complain", params{"text": strings.Repeat("y", 1<<20), "size": 100 << 20})
			talk.Use(ctx, "complain", params{"text": "many", "size": 1 << 20})
			Eventually(world.Log.String).
				Should(And(ContainSubstring("a usual line"), ContainSubstring("a line with the key is left out")))
			for _, line := range append(encoded, adaKey) {
				Expect(world.Log.String()).NotTo(ContainSubstring(line))
			}
			Expect(len(world.Log.String())).To(BeNumerically("<", 1<<20))
			Expect(talk.Use(ctx, "shout", params{"text": "still here"}).Text()).To(Equal("STILL HERE"))
		})
	})

	DescribeTable("ends the process and its descendants", Label("U24"),
		func(ctx SpecContext, end func(ctx context.Context, world *World, talk *Conversation), words ...string) {
			world := openProgram(ctx, words)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			pids := familyOf(ctx, talk)
			Expect(survivors(pids)()).To(HaveLen(3))
			end(ctx, world, talk)
			Eventually(survivors(pids)).WithTimeout(patience).Should(BeEmpty())
		},
		Entry("when the client ends the session", func(ctx context.Context, _ *World, talk *Conversation) {
			Expect(Send(talk.Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusNoContent))
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		}),
		Entry("when the grant ends", Label("G16"), func(ctx context.Context, world *World, _ *Conversation) {
			Expect(world.EndGrantsOf(ctx, adaKey)).To(Equal(1))
		}),
		Entry("when the grant ends and the program ignores SIGTERM",
			Label("G16"), func(ctx context.Context, world *World, _ *Conversation) {
				Expect(world.EndGrantsOf(ctx, adaKey)).To(Equal(1))
			}, "stubborn"),
		Entry("when the gateway stops", func(_ context.Context, world *World, _ *Conversation) { world.Stop() }),
		Entry("when the program exits itself", func(ctx context.Context, _ *World, talk *Conversation) {
			answer := talk.Use(ctx, "exit", params{})
			Expect(answer.Error.Code).To(Equal(-32000))
			Expect(answer.Text()).To(ContainSubstring("exit status 3"))
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		}),
	)

	It("ends the process of one key when a connection of the same person with another key has named its session",
		Label("U24", "U23", "G16"), func(ctx SpecContext) {
			const secondKey = "the-key-two-of-ada-44"
			people := peopleFile(ctx, map[string]string{"ada": adaKey}, map[string]string{"ada": secondKey})
			world := NewProgramGateway(stdioProgram(), people)
			client := world.NewClient()
			talk := world.Converse(ctx, sessions, client.ConnectAs(ctx, adaKey).Access)
			pid := pidOf(ctx, talk)
			first := talk.Access
			talk.Access = client.ConnectAs(ctx, secondKey).Access
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
			talk.Access = first
			Expect(pidOf(ctx, talk)).To(Equal(pid), "it still serves the first key")
			Expect(world.EndGrantsOf(ctx, adaKey)).To(Equal(1))
			Eventually(survivors([]int{pid})).WithTimeout(patience).Should(BeEmpty())
		})

	DescribeTable("answers a session that cannot be opened with the reason", Label("U9", "U21", "U22"),
		func(ctx SpecContext, status int, reason, logged string, change func(*bootstrap.Upstream)) {
			starting := 3 * time.Second // for the programs that do not answer
			if status == http.StatusBadGateway {
				starting = patience
			}
			to := stdioProgram()
			change(&to)
			world := NewProgramGateway(
				to,
				peopleOfPrograms(ctx),
				func(c *service.Config) { c.Gateway.Patience = starting },
			)
			world.Token = adaKey
			talk := world.Talk(sessions, connectedTo(ctx, world))
			answer := talk.Post(ctx, "initialize",
				params{"protocolVersion": sessions, "capabilities": params{},
					"clientInfo": params{"name": "spec", "version": "1"}})
			Expect(answer.StatusCode).To(Equal(status), answer.Text)
			Expect(answer.Text).To(And(ContainSubstring(`"code":-32000`), ContainSubstring(reason)))
			Expect(answer.Header).NotTo(HaveKey("Mcp-Session-Id"))
			Expect(world.Log.String()).To(And(ContainSubstring(logged), Not(ContainSubstring(adaKey))))
		},
		Entry("if it exits", http.StatusBadGateway, "does not start", "exit status 3", func(p *bootstrap.Upstream) {
			p.Args = append(p.Args, "exit")
		}),
		Entry("if it does not answer", http.StatusGatewayTimeout, "did not answer in time",
			"U9", func(p *bootstrap.Upstream) {
				p.Args = append(p.Args, "silent")
			}),
		Entry("if it prints its usage, in the log", http.StatusBadGateway, "does not start",
			`exit status 2; the last lines that it printed: `+
				`[\"usage: program [flags]\" \"(a line with the key is left out)\"]`,
			func(p *bootstrap.Upstream) { p.Args = append(p.Args, "usage") }),
		Entry("if it answers in several lines, in the log", http.StatusGatewayTimeout, "did not answer in time",
			`in time; the last lines that it printed: [\"{\"`,
			func(p *bootstrap.Upstream) { p.Args = append(p.Args, "pretty") }),
		Entry("if its folder does not exist", http.StatusBadGateway, "cannot be started",
			"no such file or directory", func(p *bootstrap.Upstream) {
				p.Dir = "/does/not/exist"
			}),
	)

	It("records its calls in the audit, also one that the end of the program answers",
		Label("V1"), func(ctx SpecContext) {
			path, adjust := auditing()
			world := openProgram(ctx, nil, adjust)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			talk.Use(ctx, "shout", params{"text": "hello"})
			talk.Use(ctx, "exit", params{})
			calls := toolCalls(path, 2)
			Expect([]string{calls[0].Name, calls[0].Outcome, calls[1].Name, calls[1].Outcome}).
				To(Equal([]string{"shout", "ok", "exit", "error"}))
			Expect(calls[1].Code).To(Equal(-32000))
		})

	It("reports a program that does not start as degraded, until it does", Label("U21"), func(ctx SpecContext) {
		folder := filepath.Join(GinkgoT().TempDir(), "later")
		to := stdioProgram()
		to.Dir = folder
		service := Operate(gatewayTo(""), toProgram(to, peopleOfPrograms(ctx)))
		service.Token = adaKey
		access := service.NewClient().Connect(ctx).Access
		talk := &Conversation{
			World:    service.World,
			Revision: sessions,
			Access:   access,
			target:   service.MCP(),
		}
		Expect(service.AskAdmin(ctx, "/readyz").Text).To(ContainSubstring(`"status":"ok"`))
		Expect(talk.Post(ctx, "initialize", params{"protocolVersion": sessions}).StatusCode).
			To(Equal(http.StatusBadGateway))
		ready := service.AskAdmin(ctx, "/readyz")
		Expect(ready.StatusCode).To(Equal(http.StatusOK))
		Expect(ready.Text).To(And(ContainSubstring(`"status":"degraded"`),
			ContainSubstring("no such file or directory")))
		Expect(os.Mkdir(folder, 0o700)).To(Succeed())
		service.Converse(ctx, sessions, access)
		Expect(service.AskAdmin(ctx, "/readyz").Text).NotTo(ContainSubstring("degraded"))
	})

	DescribeTable("ends after kill -9 of the gateway", Label("U24"), func(ctx SpecContext, rounds int) {
		gateway := newKilledGateway(ctx)
		for range rounds {
			gateway.crash(ctx)
		}
	}, Entry("once", 1), Entry("fifty times", 50, Label("soak"), SpecTimeout(10*time.Minute)))

	It("returns to no process after 200 abandoned sessions", Label("U24", "soak"), func(ctx SpecContext) {
		world := openProgram(ctx, nil, programLimits(func(l *bootstrap.GatewayConfig) {
			l.IdleTimeout, l.MaxProcesses = 20*time.Second, 4000
		}))
		access := connectedTo(ctx, world)
		var pids []int
		for range 200 {
			pids = append(pids, pidOf(ctx, world.Converse(ctx, sessions, access)))
		}
		AddReportEntry("processes at once", len(survivors(pids)()))
		Eventually(survivors(pids)).WithTimeout(time.Minute).Should(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})

// killedGateway is the program on one folder and address, which is killed repeatedly.
type killedGateway struct {
	*World
	binary Binary
	args   []string
	marker string
}

func newKilledGateway(ctx context.Context) *killedGateway {
	GinkgoHelper()
	self := must(os.Executable())
	crashing := NewCrashing(BuildBinary())
	crashing.Token = adaKey
	g := &killedGateway{World: crashing.World, binary: crashing.binary,
		marker: filepath.Base(crashing.Dir) + strconv.Itoa(GinkgoParallelProcess()) + strconv.Itoa(os.Getpid())}
	g.args = []string{
		"gateway", "--dev", "--addr", g.Issuer[len("http://"):], "--admin-addr", "off", "--data", g.Dir, "--verifier",
		"file", "--token-file", peopleOfPrograms(ctx),
		"--upstream", fmt.Sprintf("stdio: KEY={token} MARK=%s %s %s stubborn", g.marker, self, programWord),
	}
	return g
}

// crash kills the gateway while a session has a process.
func (g *killedGateway) crash(ctx context.Context) {
	GinkgoHelper()
	run := g.binary.Run([]string{"SSL_CERT_FILE=" + g.Clients.Certificate()}, g.args...)
	Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say("serving"))
	talk := g.Converse(ctx, sessions, g.NewClient().Connect(ctx).Access)
	pids := []int{pidOf(ctx, talk)}
	run.Kill().Wait(patience)
	Eventually(survivors(pids)).WithTimeout(patience).Should(BeEmpty())
	Eventually(func() int { return countProcesses("MARK=" + g.marker) }).WithTimeout(patience).Should(BeZero())
}
