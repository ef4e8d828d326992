package features_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime/debug"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/server"
)

// padded is a message of that many bytes.
func padded(length int) string {
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
	return head + strings.Repeat("x", length-len(head)-len(tail)) + tail
}

// sendBody posts a message of that length to an MCP endpoint; -1 does not tell the length.
func sendBody(ctx context.Context, target, access string, length int64, body io.Reader, change ...func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+access)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, apply := range change {
		apply(r)
	}
	return http.DefaultClient.Do(r)
}

// told returns what an answer says.
func told(answer *http.Response, err error) (status int, text string) {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(body)
}

// newGateway is one to an MCP server of its own.
func newGateway(adjust ...func(*server.Config)) *World {
	return NewGateway(NewUpstream(apiKey).URL+"/mcp", adjust...)
}

var _ = Describe("Limiting a message", Label("G19"), func() {
	worlds := map[string]func(...func(*server.Config)) *World{"a site": NewWorld, "a gateway": newGateway}
	for kind, open := range worlds {
		It("names the limit and the setting, also in the trace of "+kind, Label("gateway"), func(ctx SpecContext) {
			world := open()
			access := world.NewClient().Connect(ctx).Access
			for _, length := range []int64{4<<20 + 1, -1} {
				status, text := told(sendBody(ctx, world.MCP(), access, length, strings.NewReader(padded(4<<20+1))))
				Expect(status).To(Equal(http.StatusRequestEntityTooLarge))
				Expect(text).To(And(ContainSubstring("more than 4194304 bytes"), ContainSubstring("max-request-body")))
			}
			Eventually(world.Stories).WithContext(ctx).WithTimeout(patience).Should(ContainElement(
				HaveField("Says", And(ContainSubstring("more than 4194304 bytes"), ContainSubstring("max-request-body")))))
			_, text := told(sendBody(ctx, world.MCP(), access, -1, strings.NewReader(padded(4<<20))))
			Expect(text).NotTo(ContainSubstring("max-request-body"))
		})

		It("goes by the setting in "+kind, Label("gateway"), func(ctx SpecContext) {
			world := open(func(c *server.Config) { c.MaxRequestBody = 6 << 20 })
			access := world.NewClient().Connect(ctx).Access
			_, text := told(sendBody(ctx, world.MCP(), access, 6<<20, strings.NewReader(padded(6<<20))))
			Expect(text).NotTo(ContainSubstring("max-request-body"))
			_, text = told(sendBody(ctx, world.MCP(), access, 6<<20+1, strings.NewReader(padded(6<<20+1))))
			Expect(text).To(ContainSubstring("more than 6291456 bytes, the limit that max-request-body sets"))
		})

		It("refuses a batch of more than a hundred messages to "+kind, Label("gateway", "MCP 2025-03-26"), func(ctx SpecContext) {
			world := open()
			talk := world.Converse(ctx, batching, world.NewClient().Connect(ctx).Access)
			for count, status := range map[int]int{100: http.StatusOK, 101: http.StatusBadRequest} {
				var messages []string
				for i := range count {
					messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 100+i))
				}
				batch := "[" + strings.Join(messages, ",") + "]"
				r := talk.message(ctx, "ping", nil)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(batch)), int64(len(batch))
				answer := Send(r)
				Expect(answer.StatusCode).To(Equal(status), answer.Text)
				if status != http.StatusOK {
					Expect(answer.Text).To(ContainSubstring("the batch has more than 100 messages"))
				} else {
					Expect(strings.Count(answer.Text, `"result":{}`)).To(Equal(count))
				}
			}
		})
	}
})

var _ = Describe("Bounding all messages under way", Label("G19", "gateway"), func() {
	// The memory for bodies is an eighth of what the process may have.
	const memory, longest = 64 << 20, 4<<20 - 1
	// held is a message that has begun.
	type held struct {
		rest   *io.PipeWriter
		begun  int
		asked  chan struct{} // for its body, which has its place by then
		status chan int
		abort  context.CancelFunc
	}
	try := func(ctx context.Context, target, access string, length int64) *held {
		body, rest := io.Pipe()
		h := &held{rest: rest, asked: make(chan struct{}), status: make(chan int, 1)}
		ctx, h.abort = context.WithCancel(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { close(h.asked) }}))
		DeferCleanup(h.abort)
		go func() {
			answer, err := sendBody(ctx, target, access, length, body, with("Expect", "100-continue"))
			if err != nil {
				answer = &http.Response{Body: http.NoBody} // the connection was cut: a client that is still sending may not see its refusal
			}
			h.status <- answer.StatusCode
			_ = answer.Body.Close()
			_ = body.CloseWithError(io.ErrClosedPipe)
		}()
		return h
	}
	// begin sends the beginning of a message. What was answered just before may have its place still, so it tries again.
	begin := func(ctx context.Context, target, access string, length int64, begun int) *held {
		GinkgoHelper()
		for {
			h := try(ctx, target, access, length)
			select {
			case <-h.asked:
				h.begun, _ = io.WriteString(h.rest, padded(longest)[:begun])
				return h
			case status := <-h.status:
				Expect(status).To(Equal(http.StatusServiceUnavailable))
			case <-ctx.Done():
				Fail("the body was never asked for")
			}
		}
	}
	small := func(ctx context.Context, target, access string) func() int {
		return func() int {
			status, _ := told(sendBody(ctx, target, access, 100, strings.NewReader(padded(100))))
			return status
		}
	}
	withLittleMemory := func(open func() *World) *World {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
		return open()
	}
	large := func(ctx context.Context, target, access string, length int) func() int {
		return func() int {
			status, _ := told(sendBody(ctx, target, access, int64(length), strings.NewReader(padded(length))))
			return status
		}
	}
	const half = longest / 2
	// One person may use a quarter of the memory for bodies of more than 64 KiB, seven of eight MiB here, or one body.
	type people struct {
		world        *World
		mine, theirs string // access tokens
	}
	worlds := map[string]func(context.Context) people{
		"a site": func(ctx context.Context) people {
			world := withLittleMemory(func() *World { return NewWorld() })
			client := world.NewClient()
			return people{world, client.Connect(ctx).Access, client.ConnectAs(ctx, world.TokenFor(ctx, "grace", demosite.Editor)).Access}
		},
		"a gateway": func(ctx context.Context) people {
			const another = "another-key"
			upstream := NewUpstream(apiKey, another)
			world := withLittleMemory(func() *World { return NewGateway(upstream.URL + "/mcp") })
			client := world.NewClient()
			return people{world, client.Connect(ctx).Access, client.ConnectAs(ctx, another).Access}
		},
	}
	for kind, open := range worlds {
		It("refuses bodies beyond the share of one person, and accepts small bodies and those of others, in "+kind, func(ctx SpecContext) {
			all := open(ctx)
			target := all.world.MCP()
			before := small(ctx, target, all.mine)()
			Expect(before).NotTo(Equal(http.StatusServiceUnavailable))
			first := begin(ctx, target, all.mine, longest, longest-1)
			Eventually(large(ctx, target, all.mine, half)).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
			answer, err := sendBody(ctx, target, all.mine, half, strings.NewReader(padded(half)))
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
			Expect(answer.Body.Close()).To(Succeed())
			Expect(small(ctx, target, all.mine)()).To(Equal(before))
			Expect(large(ctx, target, all.theirs, half)()).To(Equal(before))
			Eventually(large(ctx, target, all.theirs, longest)).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable), "the memory for all is used up")
			_, err = io.WriteString(first.rest, padded(longest)[first.begun:])
			Expect(err).NotTo(HaveOccurred())
			Expect(first.rest.Close()).To(Succeed())
			Eventually(first.status).WithTimeout(patience).Should(Receive(Equal(before)))
			Eventually(large(ctx, target, all.mine, longest)).WithTimeout(patience).Should(Equal(before))
		}, SpecTimeout(2*patience))

		It("reserves nothing for a length that is only claimed, in "+kind, func(ctx SpecContext) {
			all := open(ctx)
			for range 20 {
				begin(ctx, all.world.MCP(), all.mine, longest, 10)
			}
			Expect(large(ctx, all.world.MCP(), all.theirs, longest)()).NotTo(Equal(http.StatusServiceUnavailable))
		}, SpecTimeout(2*patience))

		It("takes the memory of clients that go away back, told lengths or not, in "+kind, func(ctx SpecContext) {
			all := open(ctx)
			for _, length := range []int64{longest, -1, longest} {
				first := begin(ctx, all.world.MCP(), all.mine, length, longest-1)
				Eventually(large(ctx, all.world.MCP(), all.mine, longest)).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
				first.abort()
				Eventually(large(ctx, all.world.MCP(), all.mine, longest)).WithTimeout(patience).ShouldNot(Equal(http.StatusServiceUnavailable))
			}
		}, SpecTimeout(2*patience))
	}

	It("shares the memory between all MCP servers of a process", func(ctx SpecContext) {
		one, two := NewUpstream(apiKey), NewUpstream(apiKey)
		world := withLittleMemory(func() *World {
			return NewGateway(one.URL+"/mcp", func(c *server.Config) {
				c.Gateway.Upstreams = []server.UpstreamAddress{{URL: one.URL + "/mcp"}, {Path: "/other", URL: two.URL + "/mcp"}}
			})
		})
		access := world.NewClient().Connect(ctx).Access
		other := func(v url.Values) { v.Set("resource", world.Issuer+"/other") }
		client := world.NewClient()
		form := client.Exchange(client.Authorize(ctx, other))
		other(form)
		elsewhere := client.Token(ctx, form).Tokens()
		before := small(ctx, world.Issuer+"/other", elsewhere.Access)()
		Expect(before).NotTo(Equal(http.StatusServiceUnavailable))
		begin(ctx, world.MCP(), access, longest, longest-1)
		Eventually(large(ctx, world.Issuer+"/other", elsewhere.Access, longest)).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
	}, SpecTimeout(2*patience))
})
