package features_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
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
		talk := &Conversation{
			World:    world,
			Revision: stateless,
			Access:   access,
			target:   world.MCP(),
		}
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
			answer, err := patient.Do(talk.Request(ctx, http.MethodGet))
			Expect(err).NotTo(HaveOccurred())
			text, err := io.ReadAll(answer.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(HaveSuffix("data: at last\n\n"))
			Expect(strings.Count(string(text), ": keep-alive\n\n")).To(BeNumerically(">=", 4))
			Expect(answer.Body.Close()).To(Succeed())
		}, SpecTimeout(4*time.Minute))
})
