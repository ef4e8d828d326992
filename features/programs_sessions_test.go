package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
)

// waitForever calls a tool that does not answer, and returns the stream of its response.
func waitForever(ctx context.Context, talk *Conversation) *Stream {
	GinkgoHelper()
	call := talk.message(ctx, "tools/call", params{"name": "wait", "arguments": params{}})
	return Follow(call)
}

var _ = Describe("A session with a program over stdio", Label("gateway", "U24", "U25"), func() {
	It("ends as idle only without an open call and without a client that listens", func(ctx SpecContext) {
		world := openProgram(ctx, nil, programLimits(func(l *bootstrap.GatewayConfig) { l.IdleTimeout = time.Second }))
		access := connectedTo(ctx, world)
		var pids []int
		begin := func() *Conversation {
			talk := world.Converse(ctx, sessions, access)
			pids = append(pids, pidOf(ctx, talk))
			return talk
		}
		waitForever(ctx, begin())
		broken, hangUp := context.WithCancel(ctx)
		waitForever(broken, begin())
		hangUp()
		begin().Listen(ctx)
		family := familyOf(ctx, begin())
		Eventually(survivors(family)).WithTimeout(patience).Should(BeEmpty())
		Expect(survivors(pids)()).To(Equal(pids[:3]))
		Eventually(world.Log.String).WithTimeout(patience).Should(ContainSubstring("the session was idle for too long"))
	})

	DescribeTable("with an open call ends for a newer session only after those without one",
		Label("G20"), func(ctx SpecContext, revision string) {
			world := openProgram(ctx, nil, programLimits(func(l *bootstrap.GatewayConfig) {
				l.MaxProcesses = 40
			}))
			access := connectedTo(ctx, world)
			busy := world.Converse(ctx, revision, access)
			pids := []int{pidOf(ctx, busy)}
			broken, hangUp := context.WithCancel(ctx)
			defer hangUp()
			if waitForever(broken, busy); revision == sessions {
				hangUp()
			}
			idle := world.Converse(ctx, sessions, access)
			pids = append(pids, pidOf(ctx, idle))
			world.Converse(ctx, sessions, access)
			Eventually(survivors(pids)).WithTimeout(patience).Should(Equal(pids[:1]))
			Eventually(world.Log.String).WithTimeout(patience).Should(ContainSubstring(
				"a newer session has replaced it, because the limit of sessions is 2 for each person and 40 for all"))
		},
		Entry("whose client waits", batching),
		Entry("whose client has gone", sessions),
	)

	It("logs what the program prints besides messages, without the key, and understands a byte order mark",
		Label("U22", "U23"), func(ctx SpecContext) {
			world := openProgram(ctx, []string{"banner"})
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			Expect(world.Log.String()).To(And(ContainSubstring("stdout of a program"), ContainSubstring("Welcome!"),
				ContainSubstring("{not json}"),
				ContainSubstring("a line with the key is left out"), Not(ContainSubstring(adaKey))))
		})

	It("takes calls while its program talks", Label("U22", "race"), func(ctx SpecContext) {
		world := openProgram(ctx, nil)
		talk := world.Converse(ctx, batching, connectedTo(ctx, world))
		talked := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(talked)
			talk.Use(ctx, "chatter", params{"size": 3000})
		}()
		for talks := true; talks; {
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			select {
			case <-talked:
				talks = false
			default:
			}
		}
	})

	It("repeats no question to the person on a stream that its client opens anew", Label("U22"), func(ctx SpecContext) {
		world := openProgram(ctx, nil)
		talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
		waitForever(ctx, talk)
		question := func(number int) string {
			listening, stop := context.WithCancel(ctx)
			defer stop()
			stream := talk.Listen(listening)
			Follow(numbered(number, talk.message(ctx, "tools/call", params{"name": "ask", "arguments": params{}})))
			return stream.Next("message")
		}
		first := question(8)
		Expect(first).To(ContainSubstring("elicitation/create"))
		Expect(question(9)).To(And(ContainSubstring("elicitation/create"), Not(Equal(first))))
	})

	It("asks a client that takes calls as JSON on the stream of the session, and tells the program without one",
		Label("U22"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			ask := func(ctx context.Context) *http.Request {
				asking := talk.message(ctx, "tools/call", params{"name": "ask", "arguments": params{}})
				asking.Header.Set("Accept", "application/json")
				return asking
			}
			Expect(Send(ask(ctx)).Text).
				To(ContainSubstring("the client accepts only JSON, and does not listen for requests"))
			general := talk.Listen(ctx)
			answered := make(chan Response, 1)
			go func() {
				defer GinkgoRecover()
				answered <- Send(ask(ctx))
			}()
			var question struct{ ID json.RawMessage }
			Expect(json.Unmarshal([]byte(general.Next("message")), &question)).To(Succeed())
			reply := talk.message(ctx, "notifications/none", nil)
			body := `{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"action":"decline"}}`
			reply.Body, reply.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			Expect(Send(reply).StatusCode).To(Equal(http.StatusAccepted))
			Eventually(answered).WithTimeout(patience).Should(Receive(HaveField("Text", ContainSubstring("decline"))))
		}, SpecTimeout(30*time.Second))

	It("cuts off a response that its client does not read, answers the next call, and lets the client resume",
		Label("U22", "long"), func(ctx SpecContext) {
			world := openProgram(ctx, nil)
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			const size = 9 << 20 // more than the buffers of a connection hold
			unread, err := noRedirects.Do(talk.message(ctx, "tools/call",
				params{"name": "big", "arguments": params{"size": size}}))
			Expect(err).NotTo(HaveOccurred())
			begin := make([]byte, size/9)
			_, err = io.ReadFull(unread.Body, begin)
			Expect(err).NotTo(HaveOccurred())
			Expect(Send(numbered(8,
				talk.message(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "hello"}}))).Text).
				To(ContainSubstring("HELLO"))
			_, err = io.Copy(io.Discard, unread.Body)
			Expect(err).To(MatchError(io.ErrUnexpectedEOF))
			Expect(unread.Body.Close()).To(Succeed())
			_, rest, _ := strings.Cut(string(begin), "id: ")
			first, _, _ := strings.Cut(rest, "\n")
			resumed := talk.Request(ctx, http.MethodGet)
			resumed.Header.Set("Last-Event-ID", first)
			Expect(len(Send(resumed).Text)).To(BeNumerically(">", size))
		}, SpecTimeout(time.Minute))
})

// numbered changes the id of the request in a message.
func numbered(id int, r *http.Request) *http.Request {
	GinkgoHelper()
	other := strings.Replace(string(must(io.ReadAll(r.Body))), `"id":7`, fmt.Sprintf(`"id":%d`, id), 1)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(other)), int64(len(other))
	return r
}

var _ = Describe("A program in the settings", Label("gateway"), func() {
	DescribeTable("is refused, with the remedy, when",
		Label("U23", "F9", "configuration"), func(ctx SpecContext, remedy string, args ...string) {
			workingFolder()
			ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0", "--verifier=http",
				"--verify-url=https://cms.example/"}, args...)...)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(ContainSubstring(remedy))
			Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
		},
		Entry("it has no command", "--upstream: it has no command", "--upstream=stdio: A=b"),
		Entry("a quote has no end", "--upstream: a quote in the command has no end", "--upstream=stdio: sh 's3cret"),
		Entry("a variable is set twice", "--upstream: it sets the variable A twice",
			"--upstream=stdio: A=s3cret A=s3cret sh"),
		Entry("the command does not exist", `--upstream: the command "no-such-program" cannot be run`,
			"--upstream=stdio: K={token} no-such-program"),
		Entry("the program gets no key", "no variable has {token}", "--upstream=stdio: sh"),
		Entry("the program gets a key that is none",
			"the environment has {token} or another field, but the credential is", "--upstream=stdio: K={token} sh",
			"--credential=none"),
		Entry("an argument has the key", "all users of this computer can read arguments",
			"--upstream=stdio: K={token} sh --key={token}"),
		Entry("a template is wrong", "the variable K: it has an unknown field user",
			"--upstream=stdio: K={token}s3cret{user} sh"),
		Entry("the program would verify keys", `cannot tell whether the key is valid: choose verifier "http"`,
			"--upstream=stdio: K={token} sh", "--verifier=upstream"),
		Entry("keys of several upstreams cannot be told apart", "run one gateway per upstream",
			"--upstream=stdio: K={token} sh", "--upstream=/files = http://127.0.0.1:9000/mcp"),
		Entry("a limit is too low", `stdio-memory is "1KiB": write a size such as 4MiB, 32MiB or more`,
			"--upstream=stdio: K={token} sh", "--stdio-memory=1KiB"),
		Entry("no process is allowed", "write a whole number, 1 or more", "--upstream=stdio: K={token} sh",
			"--stdio-max-processes=0"),
		Entry("a setting of HTTP has no effect", "--present is set, but has no effect on a program",
			"--upstream=stdio: K={token} sh", "--present=X-Key: {token}"),
	)

	It("is written with quotes and an environment, without a shell",
		Label("U23", "configuration"), func(ctx SpecContext) {
			workingFolder()
			const line = `stdio: A='b c' K={token} sh -c 'echo "it'"'"'s" $HOME' ''`
			ran := Run(ctx, "config", "--dev", "--verifier=http", "--verify-url=https://cms.example/",
				"--upstream="+`"`+strings.ReplaceAll(line, `"`, `""`)+`"`)
			Expect(ran.Code).To(BeZero(), ran.Err)
			Expect(ran.Out).To(ContainSubstring("stdio: A="))
		})

	It("is a mapping in the file, with a working folder", Label("U23", "configuration"), func(ctx SpecContext) {
		workingFolder()
		write("pasteport.yaml", "upstream:\n  command: sh\n  args: [-c, 'a, b']\n  dir: /opt\n  env: {K: '{token}', "+
			"B: b c}\nverifier: http\nverify-url: https://cms.example/\ndev: true\n")
		ran := Run(ctx, "config")
		Expect(ran.Code).To(BeZero(), ran.Err)
		printed := ran.Settings()["upstream"]
		Expect(printed).To(Equal([]any{map[string]any{
			"command": "sh",
			"args":    []any{"-c", "a, b"},
			"dir":     "/opt",
			"env":     map[string]any{"K": "{token}", "B": "b c"},
		}}))
		write("pasteport.yaml", ran.Out)
		Expect(Run(ctx, "config").Settings()["upstream"]).To(Equal(printed))
	})

	DescribeTable("is refused as a mapping",
		Label("U23", "F9", "configuration"), func(ctx SpecContext, mapping, remedy string) {
			workingFolder()
			write("pasteport.yaml", "upstream: "+mapping+"\nverifier: http\nverify-url: https://cms.example/\n")
			ran := Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0")
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(And(ContainSubstring("upstream (from pasteport.yaml:1): "), ContainSubstring(remedy),
				Not(ContainSubstring("s3cret"))))
		},
		Entry("with an unknown key", "{command: sh, enviroment: {K: s3cret}}",
			`number 1 has the unknown key "enviroment": write path, url, command`),
		Entry("without a command", "{args: [s3cret]}", "the program has no command"),
		Entry("with a relative folder", "{command: sh, dir: s, env: {K: '{token}s3cret'}}",
			"the working folder \"s\" is relative"),
		Entry("with a URL too", "{command: sh, url: 'http://127.0.0.1:9000/mcp', env: {K: '{token}'}}",
			"it has a URL and a command: keep one"),
	)
})
