package features_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Tape records every response to the clients of the specs.
type Tape struct {
	mu   sync.Mutex
	text strings.Builder
}

// NewTape records until the end of the spec.
func NewTape() *Tape {
	t := &Tape{}
	before := noRedirects.Transport
	noRedirects.Transport = t
	DeferCleanup(func() { noRedirects.Transport = before })
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *Tape) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	head, err := httputil.DumpResponse(answer, false)
	_, _ = t.Write(head)
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(answer.Body, t), answer.Body}
	return answer, err
}

func (t *Tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *Tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

var _ = Describe("Streaming through a gateway", Label("gateway", "U4"), func() {
	var upstream *UpstreamServer
	var world *World
	BeforeEach(func() {
		upstream = NewUpstream(apiKey)
		world = NewGateway(upstream.URL + "/mcp")
	})

	It("forwards each event immediately and unchanged", func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		next := make(chan struct{})
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 5 {
				_, _ = fmt.Fprintf(w, "event: message\ndata: {\"n\":%d}\n\n", i)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-next:
				case <-r.Context().Done():
				}
			}
		})
		stream := Follow(talk.message(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}}))
		Expect(stream.Header.Get("X-Accel-Buffering")).To(Equal("no"))
		for i := range 5 {
			Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).
				Should(Receive(Equal(Event{"message", fmt.Sprintf(`{"n":%d}`, i)})))
			next <- struct{}{}
		}
	})

	It("forwards the response head of a stream before its first event", func(ctx SpecContext) {
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		Follow(talk.Request(ctx, http.MethodGet)) // returns with the head
	})

	It("forwards events of a subscription until the grant ends", Label("G16"), func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		stream := Follow(talk.message(ctx, "subscriptions/listen",
			params{"notifications": params{"toolsListChanged": true}}))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).
			Should(Receive(HaveField("Data", ContainSubstring("notifications/subscriptions/acknowledged"))))
		Expect(world.EndGrantsOf(ctx, apiKey)).To(Equal(1))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
	})

	DescribeTable("forwards ten megabytes completely", func(ctx SpecContext, mediaType string) {
		world.Token = apiKey
		access := world.NewClient().Connect(ctx).Access
		line := "data: " + strings.Repeat("0123456789abcdef", 1024) + "\n\n"
		sent := sha256.New()
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			for range 10 << 20 / len(line) {
				_, _ = io.WriteString(io.MultiWriter(w, sent), line)
			}
		})
		got := sha256.New()
		_, _ = io.WriteString(got, world.Call(ctx, access).Text)
		Expect(got.Sum(nil)).To(Equal(sent.Sum(nil)))
	}, Entry("as events", "text/event-stream"), Entry("as JSON", "application/json"))

	It("aborts a response that the upstream has aborted, so that clients can detect it", func(ctx SpecContext) {
		access := world.NewClient().Connect(ctx).Access
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		talk := world.Talk(stateless, access)
		answer, err := noRedirects.Do(talk.message(ctx, "tools/list", params{}))
		Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(answer.Body)
		Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		Expect(answer.Body.Close()).To(Succeed())
	})

	It("never sends the person's token to a client, in any response",
		Label("J13", "N13", "U15"), func(ctx SpecContext) {
			tape := NewTape()
			client := world.NewClient()
			Expect(client.Consent(ctx).Approve(ctx, apiKey+"x")).To(BeAPage(http.StatusForbidden, ""))
			tokens := client.Connect(ctx)
			for _, revision := range []string{sessions, stateless} {
				talk := world.Converse(ctx, revision, tokens.Access)
				Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
			}
			tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			for _, status := range []int{500, 307, 403, 401} {
				upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
					for _, name := range []string{"WWW-Authenticate", "Location", "Set-Cookie", "X-Echo"} {
						w.Header().Set(name, r.Header.Get("Authorization"))
					}
					http.Error(w, "no", status)
				})
				world.Call(ctx, tokens.Access)
			}
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
			Expect(tape.String()).To(ContainSubstring(tokens.Access))
			Expect(tape.String()).NotTo(ContainSubstring(apiKey))
			Expect(world.Log.String()).NotTo(ContainSubstring(apiKey))
		})
})

var _ = Describe("Idle streams through a gateway", Label("gateway", "U4", "proxies"), func() {
	It("keeps a silent stream open for two minutes with comments, and then delivers the next event",
		func(ctx SpecContext) {
			if os.Getenv("PROXIES") == "" {
				Skip("it takes two minutes; .ci/run proxies waits for it")
			}
			const idle = 2 * time.Minute
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL + "/mcp")
			talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
			upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(idle):
					_, _ = io.WriteString(w, "data: at last\n\n")
				case <-r.Context().Done():
				}
			})
			patient := &http.Client{}
			answer := must(patient.Do(talk.Request(ctx, http.MethodGet)))
			text := must(io.ReadAll(answer.Body))
			Expect(string(text)).To(HaveSuffix("data: at last\n\n"))
			Expect(strings.Count(string(text), ": keep-alive\n\n")).To(BeNumerically(">=", 4))
			Expect(answer.Body.Close()).To(Succeed())
		}, SpecTimeout(4*time.Minute))
})

// refused is the error for a message that the gateway does not forward.
type refused struct {
	id, text string
	code     int
}

const notMethod = "method is not a string of 1 to 256 of the characters A-Z a-z 0-9 _ $ . / : -"

var _ = Describe("Unusual Unicode through a gateway", Label("gateway", "U11", "G18"), func() {
	var upstream *UpstreamServer
	var post func(ctx SpecContext, body string) Response
	BeforeEach(func(ctx SpecContext) {
		upstream = NewUpstream(apiKey)
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
		post = func(ctx SpecContext, body string) Response {
			r := must(http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(body)))
			r.Header.Set("Authorization", "Bearer "+access)
			r.Header.Set("Content-Type", "application/json")
			return Send(r)
		}
	})

	It("forwards values byte for byte", func(ctx SpecContext) {
		for i, body := range []string{
			call(`"name":"shout","arguments":{"text":"cut \ud83d"}`),
			call(`"name":"shout","arguments":{"text":"\ud83d\ud83d\ude00"}`),
			call(`"name":"shout","arguments":{"text":"\\ud83d"}`),
			call(`"name":"shout","arguments":{"name":"cut \ud83d","method":"\ud83d"}`),
			`{"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{"name":"cut \ud83d"}}}`,
			call(`"name":"shout","arguments":{` + manyMembers(5000) + `}`),
			`{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}`,
			`[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\ud83d"}},{"jsonrpc":"2.0","method":"x"}]`,
			call(`"name":"shout","arguments":{"text":"a\u0000b"}`),
			call("\"name\":\"shout\",\"arguments\":{\"text\":\"\ufeffx\\ufeff\"}"),
			call("\"name\":\"shout\",\"arguments\":{\"text\":\"\ufffe\uffff\ufdd0\U0010ffff\\uffff\"}"),
			call(`"name":"shout","arguments":{"\udc00":1}`),
			call(`"name":"shout","arguments":{"a\u0000b":1}`),
			call(`"name":"крик","arguments":{"текст":"é"}`),
		} {
			Expect(post(ctx, body).StatusCode).To(Equal(http.StatusAccepted))
			Expect(string(must(io.ReadAll(upstream.Asked()[i].Body)))).To(Equal(body))
		}
	})

	DescribeTable("refuses", func(ctx SpecContext, body string, want refused) {
		got := post(ctx, body)
		Expect(got.StatusCode).To(Equal(http.StatusBadRequest))
		var answer struct {
			ID    json.RawMessage
			Error struct {
				Code    int
				Message string
			}
		}
		Expect(json.Unmarshal([]byte(got.Text), &answer)).To(Succeed(), got.Text)
		Expect(answer.Error.Message).To(MatchRegexp("^Bad Request: " + regexp.QuoteMeta(want.text) +
			`(?: \(at byte \d+\))? \(rule U11\)$`))
		Expect(refused{string(answer.ID), want.text, answer.Error.Code}).To(Equal(want))
		Expect(upstream.Asked()).To(BeEmpty())
	},
		Entry("a lone surrogate in a tool's name", call(`"name":"shout\ud83d"`),
			refused{"1", "name is not a string that all parsers read alike", -32600}),
		Entry("a lone surrogate in the method", `{"jsonrpc":"2.0","id":"a","method":"ping\ud83d"}`,
			refused{`"a"`, notMethod, -32600}),
		Entry("a raw surrogate", call("\"name\":\"shout\",\"arguments\":{\"text\":\"\xed\xa0\xbd\"}"),
			refused{"1", "the body is not valid UTF-8", -32700}),
		Entry("a truncated character", call("\"name\":\"shout\",\"arguments\":{\"text\":\"\xf0\x9f\"}"),
			refused{"1", "the body is not valid UTF-8", -32700}),
		Entry("Latin-1 in the id", "{\"jsonrpc\":\"2.0\",\"id\":\"\xe9\",\"method\":\"ping\"}",
			refused{"", "the body is not valid UTF-8", -32700}),
		Entry("a byte order mark before the message", "\ufeff"+call(`"name":"shout"`),
			refused{"", "the body begins with a byte order mark", -32700}),
		Entry("a NUL in the method", `{"jsonrpc":"2.0","id":4,"method":"ping\u0000"}`, refused{"4", notMethod, -32600}),
		Entry("a NUL in a member name", `{"jsonrpc":"2.0","id":5,"method\u0000":"ping"}`,
			refused{"5", "the message is neither a request nor a response", -32600}),
		Entry("a duplicate member, once escaped", call(`"name":"shout","n\u0061me":"delete_all"`),
			refused{"1", "an object has two members with the same name", -32600}),
		Entry("a batch in a batch", ` [ [{}]]`, refused{"", "the message is not an object", -32600}),
	)

	DescribeTable("refuses what is too long:", Label("G19"), func(ctx SpecContext, body, want string) {
		got := post(ctx, body)
		Expect(got.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(got.Text).To(ContainSubstring(want + " (rule G19)"))
		Expect(upstream.Asked()).To(BeEmpty())
	},
		Entry("an id", `{"jsonrpc":"2.0","id":"`+strings.Repeat("a", 1025)+`","method":"ping"}`,
			"id: more than 1024 bytes"),
		Entry("params", `{"jsonrpc":"2.0","id":6,"method":"ping","params":{`+manyMembers(1001)+`}}`,
			"an object has more than 1000 members"),
	)
})

// manyMembers returns so many different members.
func manyMembers(count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	return strings.Join(all, ",")
}

var _ = Describe("An MCP server behind a gateway that waits for a response", Label("gateway", "U11", "G18"), func() {
	// ask makes the upstream request a name, sends the client's response to that id, and returns
	// the gateway's response to the client, and the final result of the tool.
	ask := func(ctx SpecContext, answer func(id string) string) (Response, string) {
		upstream := NewUpstream(apiKey)
		upstream.AddQuestion()
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		stream := Follow(talk.message(ctx, "tools/call", params{"name": "ask", "arguments": params{}}))
		var question struct{ ID json.RawMessage }
		Expect(json.Unmarshal([]byte(stream.Next("message")), &question)).To(Succeed())
		r := talk.message(ctx, "notifications/none", nil)
		body := answer(string(question.ID))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return Send(r), stream.Next("message")
	}

	DescribeTable("gets an error when the gateway refused the response, instead of waiting forever:",
		func(ctx SpecContext, answer string) {
			sent, said := ask(ctx, func(id string) string { return fmt.Sprintf(answer, id) })
			Expect(sent.StatusCode).To(Equal(http.StatusBadRequest), sent.Text)
			Expect(sent.Text).To(ContainSubstring(`"id":`))
			Expect(said).To(ContainSubstring("the client's answer was refused"))
		},
		Entry("a duplicate member", `{"jsonrpc":"2.0","result":{"action":"accept","action":"decline"},"id":%s}`),
		Entry("a truncated character",
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\",\"content\":{\"name\":\"\xf0\x9f\"}}}"),
	)

	It("gets a response with a lone surrogate in a value", func(ctx SpecContext) {
		sent, said := ask(ctx, func(id string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"name":"cut \ud83d"}}}`
		})
		Expect(sent.StatusCode).To(Equal(http.StatusAccepted), sent.Text)
		Expect(said).To(ContainSubstring("cut \ufffd"), "as Go decodes it")
	})
})
