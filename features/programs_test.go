package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func pidOf(ctx context.Context, talk *Conversation) int {
	GinkgoHelper()
	return must(strconv.Atoi(talk.Use(ctx, "pid", params{}).Text()))
}

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

func programLimits(change func(*bootstrap.GatewayConfig)) func(*service.Config) {
	return func(c *service.Config) { change(&c.Gateway.GatewayConfig) }
}

const adaKey, bobKey = "the-long-key-of-ada-93", "the-long-key-of-bob-17"

func peopleOfPrograms(ctx context.Context) string {
	GinkgoHelper()
	return peopleFile(ctx, map[string]string{"ada": adaKey, "bob": bobKey})
}

// openProgram starts a gateway to the program of the specs, with Ada as the person who connects.
func openProgram(ctx context.Context, words []string, adjust ...func(*service.Config)) *World {
	GinkgoHelper()
	world := NewProgramGateway(stdioProgram(words...), peopleOfPrograms(ctx), adjust...)
	world.Token = adaKey
	return world
}

// connectedTo returns an access token of the person who connects.
func connectedTo(ctx context.Context, world *World) string {
	GinkgoHelper()
	return world.NewClient().Connect(ctx).Access
}

var _ = Describe("A program over stdio behind the gateway", Label("gateway"), func() {
	dial := func(ctx context.Context, world *World, options *mcp.ClientOptions) *mcp.ClientSession {
		GinkgoHelper()
		client := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, options)
		session := must(client.Connect(ctx,
			&mcp.StreamableClientTransport{Endpoint: world.MCP(),
				HTTPClient: &http.Client{Transport: bearer(connectedTo(ctx, world))}}, nil))
		DeferCleanup(func() { _ = session.Close() })
		return session
	}

	DescribeTable("serves each session with a process of its own",
		Label("U22", "U23"), func(ctx SpecContext, revision string) {
			world := openProgram(ctx, []string{"banner"})
			access := connectedTo(ctx, world)
			talk, other := world.Converse(ctx, revision, access), world.Converse(ctx, revision, access)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ContainElement("shout"))
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			Expect(strings.Fields(talk.Use(ctx, "environ", params{}).Text())).
				To(ConsistOf("API_KEY="+adaKey, "PATH=/usr/bin:/bin"))
			Expect(talk.Use(ctx, "folder", params{}).Text()).To(Equal("/"))
			Expect(pidOf(ctx, talk)).NotTo(Equal(pidOf(ctx, other)))
		},
		Entry("of Streamable HTTP", sessions),
		Entry("of an early revision", "2025-03-26"),
	)

	It("gets the fields of each person, and no variable for an optional field without a value",
		Label("U23", "U29", "J16"), func(ctx SpecContext) {
			program := stdioProgram()
			program.Env["SITE"], program.Env["ORG"] = "{url}", "{org}"
			world := NewProgramGateway(program, peopleOfPrograms(ctx), func(c *service.Config) {
				c.HostFields = []bootstrap.HostField{{Name: "url"},
					{Name: "org", Optional: true}, {Name: "token", Secret: true}}
			})
			client := world.NewClient()
			for person, fields := range map[string][]string{adaKey: {"url", "ada.example.com", "token", adaKey, "org",
				"acme"}, bobKey: {"url", "bob.example.com", "token", bobKey}} {
				talk := world.Converse(ctx, sessions, client.ConnectWith(ctx, fields...).Access)
				wanted := []string{"API_KEY=" + person, "PATH=/usr/bin:/bin",
					"SITE=ada.example.com", "ORG=acme"}
				if person == bobKey {
					wanted = append(wanted[:2], "SITE=bob.example.com")
				}
				Expect(strings.Fields(talk.Use(ctx, "environ", params{}).Text())).To(ConsistOf(wanted))
			}
		})

	It("passes 5 MiB, methods that it does not know, and text byte for byte",
		Label("U22", "U4"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			Expect(len(talk.Post(ctx, "tools/call", params{"name": "big", "arguments": params{"size": 5 << 20}}).Text)).
				To(BeNumerically(">", 5<<20))
			Expect(talk.Ask(ctx, "tasks/list", params{}).Text()).
				To(ContainSubstring("tasks/list"), "the error of the program")
			Expect(talk.Use(ctx, "shout", params{"text": "a\u2028\n\U0001F600é"}).Text()).
				To(Equal("A\u2028\n\U0001F600É"))
		})

	It("carries progress, questions to the person and cancellation", Label("U22"), func(ctx SpecContext) {
		mark := filepath.Join(GinkgoT().TempDir(), "mark")
		to := stdioProgram()
		to.Env["MARK"] = mark
		world := NewProgramGateway(to, peopleOfPrograms(ctx))
		world.Token = adaKey
		progress := make(chan float64, 9)
		session := dial(ctx, world, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				progress <- r.Params.Progress
			},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "decline"}, nil
			},
		})
		Expect(session.InitializeResult().ProtocolVersion).
			To(Equal(sessions), "the SDK asks for a later revision first")
		steps := &mcp.CallToolParams{Name: "steps"}
		steps.SetProgressToken("t")
		Expect(session.CallTool(ctx, steps)).Error().NotTo(HaveOccurred())
		Eventually(progress).Should(HaveLen(3))
		asked := must(session.CallTool(ctx, &mcp.CallToolParams{Name: "ask"}))
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

	It("sends progress in the response to its call, and lets a client resume a response",
		Label("U22"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			answer := talk.Post(ctx, "tools/call",
				params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": 4}})
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

	It("sends progress to its call also while others are open, and other messages to the stream of the session",
		Label("U22"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			general := talk.Listen(ctx)
			Follow(talk.message(ctx, "tools/call", params{"name": "wait", "arguments": params{}}))
			second := func(r *http.Request) {
				other := strings.Replace(string(must(io.ReadAll(r.Body))), `"id":7`, `"id":8`, 1)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(other)), int64(len(other))
			}
			answer := talk.Post(ctx, "tools/call",
				params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": "x"}}, second)
			Expect(strings.Count(answer.Text, "notifications/progress")).To(Equal(3))
			asking := talk.message(ctx, "tools/call", params{"name": "ask", "arguments": params{}})
			second(asking)
			Follow(asking)
			Expect(general.Next("message")).To(ContainSubstring("elicitation/create"))
		})

	It("answers a message without a session with what its client needs to open one",
		Label("U22"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Talk(stateless, connectedTo(ctx, world))
			answer := talk.Post(ctx, "tools/list", params{})
			Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(answer.Text).To(And(ContainSubstring("-32022"), ContainSubstring(`"2025-11-25"`)))
			talk.Revision = sessions
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusBadRequest))
			Expect(countProcesses(world.Dir)).To(BeZero())
		})

	It("keeps people and their keys apart", Label("U12", "U23"), func(ctx SpecContext) {
		tape := NewTape()
		keyOfAda, keyOfBob := fmt.Sprintf("the-key-of-ada-apart-%d", GinkgoParallelProcess()),
			fmt.Sprintf("the-key-of-bob-apart-%d", GinkgoParallelProcess())
		people := peopleFile(ctx, map[string]string{"ada": keyOfAda, "bob": keyOfBob})
		world := NewProgramGateway(stdioProgram(), people)
		world.Token = keyOfAda
		ada := world.Converse(ctx, sessions, connectedTo(ctx, world))
		world.Token = keyOfBob
		bob := world.Converse(ctx, sessions, connectedTo(ctx, world))
		Expect(ada.Use(ctx, "environ", params{}).Text()).
			To(And(ContainSubstring(keyOfAda), Not(ContainSubstring(keyOfBob))))
		Expect(bob.Use(ctx, "environ", params{}).Text()).
			To(And(ContainSubstring(keyOfBob), Not(ContainSubstring(keyOfAda))))
		Expect(countProcesses(keyOfAda)).To(Equal(1), "no other process has the key in its environment or arguments")
		theft := bob.Post(ctx, "tools/list", params{}, with("Mcp-Session-Id", ada.session))
		Expect(theft.StatusCode).To(Equal(http.StatusNotFound))
		world.Stop()
		places := filesOf(world.Dir)
		places["log"] = []byte(world.Log.String())
		Expect(tape.String()).To(ContainSubstring(keyOfAda), "the tool tells it")
		for place, content := range places {
			Expect(string(content)).NotTo(Or(ContainSubstring(keyOfAda), ContainSubstring(keyOfBob)), place)
		}
	})

	It("sets a PATH only if none is configured, and the secret of credential static",
		Label("U23"), func(ctx SpecContext) {
			to := stdioProgram()
			to.Env = map[string]string{"AUTH": "{base64(user:token)}"}
			world := NewProgramGateway(to, peopleOfPrograms(ctx), func(c *service.Config) {
				c.Gateway.Credential, c.Gateway.Secret = bootstrap.CredentialStatic, "shared"
			})
			world.Token = adaKey
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			Expect(strings.Fields(talk.Use(ctx, "environ", params{}).Text())).To(ConsistOf("AUTH=dXNlcjpzaGFyZWQ=",
				"PATH="+filepath.Dir(to.Command)+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
		})
})
