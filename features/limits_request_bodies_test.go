package features_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// padded returns a message of that many bytes.
func padded(length int) string {
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
	return head + strings.Repeat("x", length-len(head)-len(tail)) + tail
}

// sendBody posts a message of that length to an MCP endpoint; -1 sends it without Content-Length.
func sendBody(ctx context.Context, target, access string, length int64, body io.Reader,
	change ...func(*http.Request)) (*http.Response, error) {
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

func told(answer *http.Response, err error) (status int, text string) {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(body)
}

func newGateway(adjust ...func(*service.Config)) *World {
	return NewGateway(NewUpstream(apiKey).URL+"/mcp", adjust...)
}

var _ = Describe("The size limit of a message", Label("G19"), func() {
	worlds := map[string]func(...func(*service.Config)) *World{"a site": NewWorld, "a gateway": newGateway}
	for kind, open := range worlds {
		It("is reported with the setting, also in the trace, of "+kind, Label("gateway"), func(ctx SpecContext) {
			world := open()
			access := world.NewClient().Connect(ctx).Access
			for _, length := range []int64{4<<20 + 1, -1} {
				status, text := told(sendBody(ctx, world.MCP(), access, length, strings.NewReader(padded(4<<20+1))))
				Expect(status).To(Equal(http.StatusRequestEntityTooLarge))
				Expect(text).To(And(ContainSubstring("more than 4194304 bytes"), ContainSubstring("max-request-body")))
			}
			Eventually(world.Stories).WithContext(ctx).WithTimeout(patience).Should(ContainElement(
				HaveField("Says",
					And(ContainSubstring("more than 4194304 bytes"), ContainSubstring("max-request-body")))))
			_, text := told(sendBody(ctx, world.MCP(), access, -1, strings.NewReader(padded(4<<20))))
			Expect(text).NotTo(ContainSubstring("max-request-body"))
		})

		It("follows the setting in "+kind, Label("gateway"), func(ctx SpecContext) {
			world := open(func(c *service.Config) { c.MaxRequestBody = 6 << 20 })
			access := world.NewClient().Connect(ctx).Access
			_, text := told(sendBody(ctx, world.MCP(), access, 6<<20, strings.NewReader(padded(6<<20))))
			Expect(text).NotTo(ContainSubstring("max-request-body"))
			_, text = told(sendBody(ctx, world.MCP(), access, 6<<20+1, strings.NewReader(padded(6<<20+1))))
			Expect(text).To(ContainSubstring("more than 6291456 bytes, the limit that max-request-body sets"))
		})

		It("refuses a batch of more than a hundred messages to "+kind,
			Label("gateway", "MCP 2025-03-26"), func(ctx SpecContext) {
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

// intake counts the body bytes that a server has read, and its running requests.
type intake struct{ read, unfinished atomic.Int64 }

func intakeOf(world *World) *intake {
	in, handler := new(intake), world.server.Config.Handler
	world.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.unfinished.Add(1)
		defer in.unfinished.Add(-1)
		if r.Body != http.NoBody {
			r.Body = counted{r.Body, &in.read}
		}
		handler.ServeHTTP(w, r)
	})
	return in
}

// counted is a body.
type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

var _ = Describe("The memory limit for bodies", Label("G19", "gateway"), func() {
	// The memory for bodies is an eighth of what the process may have. One person may use a quarter
	// of the memory for bodies of more than 64 KiB, seven of eight MiB here, or one body.
	const memory, longest = 64 << 20, 4<<20 - 1
	const small, half = 100, longest / 2
	type people struct {
		world        *World
		intake       *intake
		mine, theirs string // access tokens
	}
	// held is a message that was sent in part.
	type held struct {
		rest   *io.PipeWriter
		status chan int
		abort  context.CancelFunc
	}
	// begin sends the start of a message and waits until the server has read it, because the kernel
	// buffers sent bytes.
	begin := func(ctx context.Context, at people, access string, length int64, begun int) *held {
		GinkgoHelper()
		body, rest := io.Pipe()
		h := &held{rest: rest, status: make(chan int, 1)}
		ctx, h.abort = context.WithCancel(ctx)
		DeferCleanup(h.abort)
		read := at.intake.read.Load()
		go func() {
			// With an Expect header, net/http does not buffer the body.
			answer, err := sendBody(ctx, at.world.MCP(), access, length, body, with("Expect", "100-continue"))
			if err != nil {
				answer = &http.Response{Body: http.NoBody}
			}
			h.status <- answer.StatusCode
			_ = answer.Body.Close()
			_ = body.CloseWithError(io.ErrClosedPipe)
		}()
		Expect(io.WriteString(rest, padded(longest)[:begun])).Error().NotTo(HaveOccurred())
		Eventually(at.intake.read.Load).WithContext(ctx).WithTimeout(patience).Should(Equal(read + int64(begun)))
		return h
	}
	// end sends the last byte and returns the status of the response.
	end := func(h *held) (status int) {
		GinkgoHelper()
		Expect(io.WriteString(h.rest, padded(longest)[longest-1:])).Error().NotTo(HaveOccurred())
		Expect(h.rest.Close()).To(Succeed())
		Eventually(h.status).WithTimeout(patience).Should(Receive(&status))
		return status
	}
	// awaitIdle waits until no request is running. A client may get its response just before the
	// server returns the memory of the body.
	awaitIdle := func(ctx context.Context, at people) {
		GinkgoHelper()
		Eventually(at.intake.unfinished.Load).WithContext(ctx).WithTimeout(patience).Should(BeZero())
	}
	send := func(ctx context.Context, target, access string, length int) int {
		GinkgoHelper()
		status, _ := told(sendBody(ctx, target, access, int64(length), strings.NewReader(padded(length))))
		return status
	}
	withLittleMemory := func(open func() *World) people {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
		world := open()
		return people{world: world, intake: intakeOf(world)}
	}
	worlds := map[string]func(context.Context) people{
		"a site": func(ctx context.Context) people {
			all := withLittleMemory(func() *World { return NewWorld() })
			client := all.world.NewClient()
			all.mine, all.theirs = client.Connect(ctx).Access,
				client.ConnectAs(ctx, all.world.TokenFor(ctx, "grace", demosite.Editor)).Access
			return all
		},
		"a gateway": func(ctx context.Context) people {
			const another = "another-key"
			upstream := NewUpstream(apiKey, another)
			all := withLittleMemory(func() *World { return NewGateway(upstream.URL + "/mcp") })
			client := all.world.NewClient()
			all.mine, all.theirs = client.Connect(ctx).Access, client.ConnectAs(ctx, another).Access
			return all
		},
	}
	for kind, open := range worlds {
		It("refuses bodies beyond the share of one person, and accepts small bodies and those of others, in "+kind,
			func(ctx SpecContext) {
				all := open(ctx)
				target := all.world.MCP()
				before := send(ctx, target, all.mine, small)
				Expect(before).NotTo(Equal(http.StatusServiceUnavailable))
				first := begin(ctx, all, all.mine, longest, longest-1)
				answer := must(sendBody(ctx, target, all.mine, half, strings.NewReader(padded(half))))
				Expect(answer.Body.Close()).To(Succeed())
				Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
				Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
				Expect(send(ctx, target, all.mine, small)).To(Equal(before))
				Expect(send(ctx, target, all.theirs, half)).To(Equal(before))
				Expect(send(ctx, target, all.theirs, longest)).
					To(Equal(http.StatusServiceUnavailable), "the memory for all is used up")
				Expect(end(first)).To(Equal(before))
				awaitIdle(ctx, all)
				Expect(send(ctx, target, all.mine, longest)).To(Equal(before))
			}, SpecTimeout(2*patience))

		It("keeps no memory for a refused body that the client still sends, in "+kind, func(ctx SpecContext) {
			all := open(ctx)
			begin(ctx, all, all.theirs, longest, longest-1)
			refused := begin(ctx, all, all.mine, longest, longest-1)
			Expect(send(ctx, all.world.MCP(), all.mine, half)).NotTo(Equal(http.StatusServiceUnavailable))
			Expect(end(refused)).To(Equal(http.StatusServiceUnavailable))
		}, SpecTimeout(2*patience))

		It("reserves no memory for Content-Length alone, in "+kind, func(ctx SpecContext) {
			all := open(ctx)
			for range 20 {
				begin(ctx, all, all.mine, longest, 10)
			}
			Expect(send(ctx, all.world.MCP(), all.theirs, longest)).NotTo(Equal(http.StatusServiceUnavailable))
		}, SpecTimeout(2*patience))

		It("frees the memory of clients that disconnect, with and without Content-Length, in "+kind,
			func(ctx SpecContext) {
				all := open(ctx)
				for _, length := range []int64{longest, -1, longest} {
					first := begin(ctx, all, all.mine, length, longest-1)
					Expect(send(ctx, all.world.MCP(), all.mine, longest)).To(Equal(http.StatusServiceUnavailable))
					first.abort()
					awaitIdle(ctx, all)
					Expect(send(ctx, all.world.MCP(), all.mine, longest)).NotTo(Equal(http.StatusServiceUnavailable))
					awaitIdle(ctx, all)
				}
			}, SpecTimeout(2*patience))
	}

	It("shares the memory between all MCP servers of a process", func(ctx SpecContext) {
		one, two := NewUpstream(apiKey), NewUpstream(apiKey)
		all := withLittleMemory(func() *World {
			return NewGateway(one.URL+"/mcp", func(c *service.Config) {
				c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt("/other", two.URL+"/mcp"))
			})
		})
		client := all.world.NewClient()
		all.mine = client.Connect(ctx).Access
		atOther := all.world.Issuer + "/other"
		other := func(v url.Values) { v.Set("resource", atOther) }
		client = all.world.NewClient()
		form := client.Exchange(client.Authorize(ctx, other))
		other(form)
		elsewhere := client.Token(ctx, form).Tokens().Access
		Expect(send(ctx, atOther, elsewhere, longest)).NotTo(Equal(http.StatusServiceUnavailable))
		awaitIdle(ctx, all)
		begin(ctx, all, all.mine, longest, longest-1)
		Expect(send(ctx, atOther, elsewhere, longest)).To(Equal(http.StatusServiceUnavailable))
	}, SpecTimeout(2*patience))
})
