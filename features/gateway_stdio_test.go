package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/server"
)

// pidOf returns the process of a conversation.
func pidOf(ctx context.Context, talk *Conversation) int {
	GinkgoHelper()
	pid, err := strconv.Atoi(talk.Use(ctx, "pid", params{}).Text())
	Expect(err).NotTo(HaveOccurred())
	return pid
}

// familyOf returns the process of a conversation and two that it starts.
func familyOf(ctx context.Context, talk *Conversation) []int {
	GinkgoHelper()
	var children []int
	Expect(json.Unmarshal([]byte(talk.Use(ctx, "spawn", params{}).Text()), &children)).To(Succeed())
	Expect(children).To(HaveLen(2))
	return append(children, pidOf(ctx, talk))
}

// survivors returns the processes that still exist.
func survivors(pids []int) func() []int {
	return func() []int {
		return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !isRunning(pid) })
	}
}

// programLimits changes the limits of the processes.
func programLimits(change func(*bootstrap.ProgramLimits)) func(*server.Config) {
	return func(c *server.Config) { change(&c.Gateway.ProgramLimits) }
}

var _ = Describe("A program over stdio behind the gateway", Label("gateway"), func() {
	const key, otherKey = "key-of-ada-93", "key-of-bob-17"
	var people string
	BeforeEach(func(ctx SpecContext) { people = peopleFile(ctx, map[string]string{"ada": key, "bob": otherKey}) })

	open := func(words []string, adjust ...func(*server.Config)) *World {
		GinkgoHelper()
		world := NewProgramGateway(stdioProgram(words...), people, adjust...)
		world.Token = key
		return world
	}
	connect := func(ctx context.Context, world *World) string {
		GinkgoHelper()
		return world.NewClient().Connect(ctx).Access
	}
	dial := func(ctx context.Context, world *World, options *mcp.ClientOptions) *mcp.ClientSession {
		GinkgoHelper()
		client := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, options)
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: world.MCP(), HTTPClient: &http.Client{Transport: bearing(connect(ctx, world))}}, nil)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = session.Close() })
		return session
	}

	DescribeTable("serves each session with a process of its own", Label("U22", "U23"), func(ctx SpecContext, revision string) {
		world := open([]string{"banner"})
		access := connect(ctx, world)
		talk, other := world.Converse(ctx, revision, access), world.Converse(ctx, revision, access)
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ContainElement("shout"))
		Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
		Expect(strings.Fields(talk.Use(ctx, "environ", params{}).Text())).To(ConsistOf("API_KEY="+key, "PATH=/usr/bin:/bin"))
		Expect(talk.Use(ctx, "folder", params{}).Text()).To(Equal("/"))
		Expect(pidOf(ctx, talk)).NotTo(Equal(pidOf(ctx, other)))
	},
		Entry("of Streamable HTTP", sessions),
		Entry("of an early revision", "2025-03-26"),
		Entry("of HTTP+SSE", httpSSE),
	)

	It("passes 5 MiB, methods that it does not know, and text byte for byte", Label("U22", "U4"), func(ctx SpecContext) {
		world := open(nil)
		talk := world.Converse(ctx, sessions, connect(ctx, world))
		Expect(len(talk.Post(ctx, "tools/call", params{"name": "big", "arguments": params{"size": 5 << 20}}).Text)).To(BeNumerically(">", 5<<20))
		Expect(talk.Ask(ctx, "tasks/list", params{}).Text()).To(ContainSubstring("tasks/list"), "the error of the program")
		Expect(talk.Use(ctx, "shout", params{"text": "a\u2028\n\U0001F600é"}).Text()).To(Equal("A\u2028\n\U0001F600É"))
	})

	It("carries progress, questions to the person and cancellation", Label("U22"), func(ctx SpecContext) {
		mark := filepath.Join(GinkgoT().TempDir(), "mark")
		to := stdioProgram()
		to.Env["MARK"] = mark
		world := NewProgramGateway(to, people)
		world.Token = key
		progress := make(chan float64, 9)
		session := dial(ctx, world, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "decline"}, nil
			},
		})
		Expect(session.InitializeResult().ProtocolVersion).To(Equal(sessions), "the SDK asks for a later revision first")
		steps := &mcp.CallToolParams{Name: "steps"}
		steps.SetProgressToken("t")
		_, err := session.CallTool(ctx, steps)
		Expect(err).NotTo(HaveOccurred())
		Eventually(progress).Should(HaveLen(3))
		asked, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
		Expect(err).NotTo(HaveOccurred())
		Expect(asked.Content[0].(*mcp.TextContent).Text).To(Equal("decline"))
		waiting, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(waiting, &mcp.CallToolParams{Name: "wait"})
			ended <- err
		}()
		Consistently(ended, "100ms").ShouldNot(Receive())
		cancel()
		Eventually(ended).Should(Receive(MatchError(context.Canceled)))
		Eventually(mark).Should(BeAnExistingFile())
	})

	It("sends progress in the response to its call, and lets a client resume a response", Label("U22"), func(ctx SpecContext) {
		world := open(nil)
		talk := world.Converse(ctx, sessions, connect(ctx, world))
		answer := talk.Post(ctx, "tools/call", params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": 4}})
		Expect(strings.Count(answer.Text, "notifications/progress")).To(Equal(3))
		_, rest, _ := strings.Cut(answer.Text, "id: ")
		first, _, _ := strings.Cut(rest, "\n")
		resumed := talk.Request(ctx, http.MethodGet)
		resumed.Header.Set("Last-Event-ID", first)
		again := Send(resumed)
		_, afterPrime, _ := strings.Cut(answer.Text, "\n\n")
		Expect(again.Text).To(Equal(": ok\n\n" + afterPrime))
		resumed = talk.Request(ctx, http.MethodGet)
		resumed.Header.Set("Last-Event-ID", "unknown_1")
		Expect(Send(resumed).StatusCode).To(Equal(http.StatusBadRequest))
	})

	It("sends progress to its call also while others are open, and other messages to the stream of the session", Label("U22"), func(ctx SpecContext) {
		world := open(nil)
		talk := world.Converse(ctx, sessions, connect(ctx, world))
		general := talk.Listen(ctx)
		Follow(talk.message(ctx, "tools/call", params{"name": "wait", "arguments": params{}}))
		second := func(r *http.Request) {
			body, err := io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
			other := strings.Replace(string(body), `"id":7`, `"id":8`, 1)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(other)), int64(len(other))
		}
		answer := talk.Post(ctx, "tools/call", params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": "x"}}, second)
		Expect(strings.Count(answer.Text, "notifications/progress")).To(Equal(3))
		asking := talk.message(ctx, "tools/call", params{"name": "ask", "arguments": params{}})
		second(asking)
		Follow(asking)
		Expect(general.Next("message")).To(ContainSubstring("elicitation/create"))
	})

	It("refuses a second request with the id of an open one", Label("U22"), func(ctx SpecContext) {
		world := open(nil)
		talk := world.Converse(ctx, sessions, connect(ctx, world))
		Follow(talk.message(ctx, "tools/call", params{"name": "wait", "arguments": params{}}))
		answer := talk.Post(ctx, "tools/list", params{})
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(answer.Text).To(ContainSubstring("is under way"))
	})

	It("answers a message without a session with what its client needs to open one", Label("U22"), func(ctx SpecContext) {
		world := open(nil)
		talk := &Conversation{World: world, Revision: stateless, Access: connect(ctx, world), target: world.MCP()}
		answer := talk.Post(ctx, "tools/list", params{})
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(answer.Text).To(And(ContainSubstring("-32022"), ContainSubstring(`"2025-11-25"`)))
		talk.Revision = sessions
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusBadRequest))
		Expect(countProcesses(world.Dir)).To(BeZero())
	})

	It("keeps people and their keys apart", Label("U12", "U23"), func(ctx SpecContext) {
		tape := NewTape()
		key, otherKey := fmt.Sprintf("ada-apart-%d", GinkgoParallelProcess()), fmt.Sprintf("bob-apart-%d", GinkgoParallelProcess())
		people = peopleFile(ctx, map[string]string{"ada": key, "bob": otherKey})
		world := open(nil)
		world.Token = key
		ada := world.Converse(ctx, sessions, connect(ctx, world))
		world.Token = otherKey
		bob := world.Converse(ctx, sessions, connect(ctx, world))
		Expect(ada.Use(ctx, "environ", params{}).Text()).To(And(ContainSubstring(key), Not(ContainSubstring(otherKey))))
		Expect(bob.Use(ctx, "environ", params{}).Text()).To(And(ContainSubstring(otherKey), Not(ContainSubstring(key))))
		Expect(countProcesses(key)).To(Equal(1), "the supervisor has no key in its environment or arguments")
		theft := bob.Post(ctx, "tools/list", params{}, with("Mcp-Session-Id", ada.session))
		Expect(theft.StatusCode).To(Equal(http.StatusNotFound))
		world.Stop()
		places := filesOf(world.Dir)
		places["log"] = []byte(world.Log.String())
		Expect(tape.String()).To(ContainSubstring(key), "the tool tells it")
		for place, content := range places {
			Expect(string(content)).NotTo(Or(ContainSubstring(key), ContainSubstring(otherKey)), place)
		}
	})

	It("sets a PATH only if none is configured, and the secret of credential static", Label("U23"), func(ctx SpecContext) {
		to := stdioProgram()
		to.Env = map[string]string{"AUTH": "{base64(user:token)}"}
		world := NewProgramGateway(to, people, func(c *server.Config) {
			c.Gateway.Credential, c.Gateway.Secret = bootstrap.CredentialStatic, "shared"
		})
		world.Token = key
		talk := world.Converse(ctx, sessions, connect(ctx, world))
		Expect(strings.Fields(talk.Use(ctx, "environ", params{}).Text())).To(ConsistOf("AUTH=dXNlcjpzaGFyZWQ=",
			"PATH="+filepath.Dir(to.Command)+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
	})

	Context("limits", Label("U25"), func() {
		It("the processes of a person, and of all, and ends the idlest", Label("G20"), func(ctx SpecContext) {
			world := open(nil, programLimits(func(l *bootstrap.ProgramLimits) { l.MaxProcesses, l.MaxProcessesPerPerson = 3, 2 }))
			access := connect(ctx, world)
			var talks []*Conversation
			var pids []int
			for range 3 {
				talk := world.Converse(ctx, sessions, access)
				talks, pids = append(talks, talk), append(pids, pidOf(ctx, talk))
			}
			Eventually(survivors(pids)).Should(Equal(pids[1:]))
			Expect(talks[0].Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
			world.Token = otherKey
			bob := connect(ctx, world)
			for range 2 {
				pids = append(pids, pidOf(ctx, world.Converse(ctx, sessions, bob)))
			}
			Eventually(survivors(pids)).Should(HaveLen(3))
			Expect(survivors(pids[3:])()).To(HaveLen(2))
		})

		It("the memory and processor time of a process, and allows no core file", func(ctx SpecContext) {
			world := open(nil, programLimits(func(l *bootstrap.ProgramLimits) { l.Memory, l.CPUTime = 1<<30, time.Minute }))
			talk := world.Converse(ctx, sessions, connect(ctx, world))
			Expect(talk.Use(ctx, "limits", params{}).Text()).To(Equal("0 1073741824 60 "))
		})

		It("the length of a message", func(ctx SpecContext) {
			world := open(nil)
			talk := world.Converse(ctx, sessions, connect(ctx, world))
			pid := pidOf(ctx, talk)
			Expect(talk.Use(ctx, "endless", params{}).Text()).To(ContainSubstring("it sent a message that is too long"))
			Eventually(survivors([]int{pid})).Should(BeEmpty())
		})

		It("what it logs of stderr, and leaves out lines with the key", Label("U23"), func(ctx SpecContext) {
			world := open(nil)
			talk := world.Converse(ctx, sessions, connect(ctx, world))
			talk.Use(ctx, "complain", params{"text": "a usual line"})
			talk.Use(ctx, "complain", params{"text": "the key is " + key})
			talk.Use(ctx, "complain", params{"text": strings.Repeat("y", 1<<20), "size": 100 << 20})
			talk.Use(ctx, "complain", params{"text": "many", "size": 1 << 20})
			Eventually(world.Log.String).Should(And(ContainSubstring("a usual line"), ContainSubstring("a line with the key is left out")))
			Expect(world.Log.String()).NotTo(ContainSubstring(key))
			Expect(len(world.Log.String())).To(BeNumerically("<", 1<<20))
			Expect(talk.Use(ctx, "shout", params{"text": "still here"}).Text()).To(Equal("STILL HERE"))
		})
	})

	DescribeTable("ends the process and its descendants", Label("U24"), func(ctx SpecContext, end func(ctx context.Context, world *World, talk *Conversation), words ...string) {
		world := open(words, programLimits(func(l *bootstrap.ProgramLimits) { l.IdleTimeout = 2 * time.Second }))
		talk := world.Converse(ctx, sessions, connect(ctx, world))
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
			Expect(world.EndGrantsOf(ctx, key)).To(Equal(1))
		}),
		Entry("when the grant ends and the program ignores SIGTERM", Label("G16"), func(ctx context.Context, world *World, _ *Conversation) {
			Expect(world.EndGrantsOf(ctx, key)).To(Equal(1))
		}, "stubborn"),
		Entry("when the gateway stops", func(_ context.Context, world *World, _ *Conversation) { world.Stop() }),
		Entry("without a message for the idle timeout", func(context.Context, *World, *Conversation) {}),
		Entry("when the program exits itself", func(ctx context.Context, _ *World, talk *Conversation) {
			answer := talk.Use(ctx, "exit", params{})
			Expect(answer.Error.Code).To(Equal(-32000))
			Expect(answer.Text()).To(ContainSubstring("exit status 3"))
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		}),
	)

	It("ends the process with the stream of HTTP+SSE", Label("U24"), func(ctx SpecContext) {
		world := open(nil)
		talk := world.Converse(ctx, httpSSE, connect(ctx, world))
		pids := familyOf(ctx, talk)
		Expect(talk.stream.Body.Close()).To(Succeed())
		Eventually(survivors(pids)).WithTimeout(patience).Should(BeEmpty())
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
	})

	DescribeTable("answers a session that cannot be opened with the reason", Label("U9", "U21", "U22"), func(ctx SpecContext, status int, reason, logged string, change func(*bootstrap.Program)) {
		to := stdioProgram()
		change(&to)
		world := NewProgramGateway(to, people, programLimits(func(l *bootstrap.ProgramLimits) { l.StartTimeout = time.Second }))
		world.Token = key
		talk := &Conversation{World: world, Revision: sessions, Access: connect(ctx, world), target: world.MCP()}
		answer := talk.Post(ctx, "initialize", params{"protocolVersion": sessions, "capabilities": params{}, "clientInfo": params{"name": "spec", "version": "1"}})
		Expect(answer.StatusCode).To(Equal(status), answer.Text)
		Expect(answer.Text).To(And(ContainSubstring(`"code":-32000`), ContainSubstring(reason)))
		Expect(answer.Header).NotTo(HaveKey("Mcp-Session-Id"))
		Expect(world.Log.String()).To(ContainSubstring(logged))
	},
		Entry("if it exits", http.StatusBadGateway, "does not start", "exit status 3", func(p *bootstrap.Program) { p.Args = append(p.Args, "exit") }),
		Entry("if it does not answer", http.StatusGatewayTimeout, "did not answer in time", "U9", func(p *bootstrap.Program) { p.Args = append(p.Args, "silent") }),
		Entry("if its folder does not exist", http.StatusBadGateway, "does not start", "the program cannot be started", func(p *bootstrap.Program) { p.Dir = "/does/not/exist" }),
	)

	It("records its calls in the audit, also one that the end of the program answers", Label("V1"), func(ctx SpecContext) {
		path, adjust := auditing()
		world := open(nil, adjust)
		talk := world.Converse(ctx, sessions, connect(ctx, world))
		talk.Use(ctx, "shout", params{"text": "hello"})
		talk.Use(ctx, "exit", params{})
		calls := toolCalls(path, 2)
		Expect([]string{calls[0].Name, calls[0].Outcome, calls[1].Name, calls[1].Outcome}).To(Equal([]string{"shout", "ok", "exit", "error"}))
		Expect(calls[1].Code).To(Equal(-32000))
	})

	It("reports a program that does not start as degraded, until it does", Label("U21"), func(ctx SpecContext) {
		folder := filepath.Join(GinkgoT().TempDir(), "later")
		to := stdioProgram()
		to.Dir = folder
		service := Operate(gatewayTo(""), toProgram(to, people))
		service.Token = key
		access := service.NewClient().Connect(ctx).Access
		talk := &Conversation{World: service.World, Revision: sessions, Access: access, target: service.MCP()}
		Expect(service.AskAdmin(ctx, "/readyz").Text).To(ContainSubstring(`"status":"ok"`))
		Expect(talk.Post(ctx, "initialize", params{"protocolVersion": sessions}).StatusCode).To(Equal(http.StatusBadGateway))
		ready := service.AskAdmin(ctx, "/readyz")
		Expect(ready.StatusCode).To(Equal(http.StatusOK))
		Expect(ready.Text).To(And(ContainSubstring(`"status":"degraded"`), ContainSubstring("exit status 127")))
		Expect(os.Mkdir(folder, 0o700)).To(Succeed())
		service.Converse(ctx, sessions, access)
		Expect(service.AskAdmin(ctx, "/readyz").Text).NotTo(ContainSubstring("degraded"))
	})

	DescribeTable("is refused, with the remedy, when", Label("U23", "F9", "configuration"), func(ctx SpecContext, remedy string, args ...string) {
		workingFolder()
		ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0", "--verifier=http", "--verify-url=https://cms.example/"}, args...)...)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(remedy))
		Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
	},
		Entry("it has no command", "--upstream: number 1: it has no command", "--upstream=stdio: A=b"),
		Entry("a quote has no end", "--upstream: number 1: a quote in the command has no end", "--upstream=stdio: sh 's3cret"),
		Entry("a variable is set twice", "--upstream: number 1: it sets the variable A twice", "--upstream=stdio: A=s3cret A=s3cret sh"),
		Entry("the command does not exist", `--upstream: number 1: the command "no-such-program" cannot be run`, "--upstream=stdio: K={token} no-such-program"),
		Entry("the program gets no key", "no variable has {token}", "--upstream=stdio: sh"),
		Entry("the program gets a key that is none", `but the credential is "none": leave it out`, "--upstream=stdio: K={token} sh", "--credential=none"),
		Entry("an argument has the key", "all users of this computer can read arguments", "--upstream=stdio: K={token} sh --key={token}"),
		Entry("a template is wrong", "the variable K: it has an unknown field user", "--upstream=stdio: K={token}s3cret{user} sh"),
		Entry("the program would verify keys", `cannot tell whether the key is valid: choose --verifier "http"`, "--upstream=stdio: K={token} sh", "--verifier=upstream"),
		Entry("keys of several upstreams cannot be told apart", "run one gateway per upstream", "--upstream=stdio: K={token} sh", "--upstream=/files = http://127.0.0.1:9000/mcp"),
		Entry("static has no secret", `--credential "static" needs it`, "--upstream=stdio: K={token} sh", "--credential=static"),
		Entry("a setting of HTTP has no effect", "--present is set, but has no effect on a program", "--upstream=stdio: K={token} sh", "--present=X-Key: {token}"),
		Entry("a limit is too low", "stdio-memory is 1024 bytes: choose 32MiB or more", "--upstream=stdio: K={token} sh", "--stdio-memory=1KiB"),
		Entry("no process is allowed", "write a whole number of 1 or more", "--upstream=stdio: K={token} sh", "--stdio-max-processes=0"),
	)

	It("is written with quotes and an environment, without a shell", Label("U23", "configuration"), func(ctx SpecContext) {
		workingFolder()
		const line = `stdio: A='b c' K={token} sh -c 'echo "it'"'"'s" $HOME' ''`
		ran := Run(ctx, "config", "--dev", "--verifier=http", "--verify-url=https://cms.example/", "--upstream="+`"`+strings.ReplaceAll(line, `"`, `""`)+`"`)
		Expect(ran.Code).To(BeZero(), ran.Err)
		Expect(ran.Out).To(ContainSubstring("stdio: A="))
	})

	DescribeTable("leaves no process after kill -9 of the gateway", Label("U24"), func(ctx SpecContext, rounds int) {
		gateway := newKilledGateway(ctx, people, key)
		for range rounds {
			gateway.crash(ctx)
		}
	}, Entry("once", 1), Entry("fifty times", 50, Label("soak"), SpecTimeout(10*time.Minute)))

	It("returns to no process after 200 abandoned sessions", Label("U24", "soak"), func(ctx SpecContext) {
		world := open(nil, programLimits(func(l *bootstrap.ProgramLimits) { l.IdleTimeout, l.MaxProcessesPerPerson = 20*time.Second, 200 }))
		access := connect(ctx, world)
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

func newKilledGateway(ctx context.Context, people, key string) *killedGateway {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	crashing := NewCrashing(BuildBinary())
	crashing.Token = key
	g := &killedGateway{World: crashing.World, binary: crashing.binary, marker: filepath.Base(crashing.Dir) + strconv.Itoa(GinkgoParallelProcess()) + strconv.Itoa(os.Getpid())}
	g.args = []string{
		"gateway", "--dev", "--addr", g.Issuer[len("http://"):], "--admin-addr", "off", "--data", g.Dir, "--verifier", "file", "--token-file", people,
		"--upstream", fmt.Sprintf("stdio: KEY={token} MARK=%s %s %s stubborn", g.marker, self, programWord),
	}
	return g
}

// crash kills the gateway while a session has a process and descendants.
func (g *killedGateway) crash(ctx context.Context) {
	GinkgoHelper()
	run := g.binary.Run([]string{"SSL_CERT_FILE=" + g.Clients.Certificate()}, g.args...)
	Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say("serving"))
	talk := g.Converse(ctx, sessions, g.NewClient().Connect(ctx).Access)
	pids := familyOf(ctx, talk)
	run.Kill().Wait(patience)
	Eventually(survivors(pids)).WithTimeout(patience).Should(BeEmpty())
	Eventually(func() int { return countProcesses("MARK=" + g.marker) }).WithTimeout(patience).Should(BeZero())
}
