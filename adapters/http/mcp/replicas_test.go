package mcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
)

// replicas are two sites on one bus that know the same tokens.
func replicas(bus Bus, change ...func(*Options)) (holder, other *site) {
	GinkgoHelper()
	change = append(change, func(o *Options) { o.Bus = bus })
	holder = openSite(change...)
	other = openSite(append(change, func(o *Options) { o.Authorization = holder.tokens })...)
	other.tokens = holder.tokens
	Expect(holder.mcp.Join()).To(Succeed())
	Expect(other.mcp.Join()).To(Succeed())
	return holder, other
}

// withNumbers adds a tool that tells its progress three times, waits to be let go on, and answers with a text of any length.
func (s *site) withNumbers() (goOn chan struct{}) {
	goOn = make(chan struct{})
	type input struct {
		Length int `json:"length"`
	}
	sdk.AddTool(s.sdk, &sdk.Tool{Name: "numbers"}, func(ctx context.Context, r *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		select {
		case <-goOn:
		case <-ctx.Done():
			s.ended <- struct{}{}
			return nil, nil, ctx.Err()
		}
		return text(strings.Repeat("x", in.Length)), nil, nil
	})
	return goOn
}

func numbers(length int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"numbers","arguments":{"length":%d},"_meta":{"progressToken":"p"}}}`, length)
}

func listen(ctx context.Context, s *site, session string) follow {
	GinkgoHelper()
	f := s.follow(ctx, http.MethodGet, "/mcp", "", append(in(session, alice), "Accept", "text/event-stream")...)
	Expect(f.StatusCode).To(Equal(http.StatusOK))
	Eventually(f.lines).Should(Receive(Equal(": ok")))
	return f
}

// slow is a client that takes a write when it reads.
type slow struct {
	header http.Header
	io.Writer
}

func (s slow) Header() http.Header { return s.header }
func (slow) WriteHeader(int)       {}
func (slow) Flush()                {}

var _ = Describe("Answering in the sessions of other replicas", Label("R1"), func() {
	var bus *wire
	var holder, other *site
	BeforeEach(func() {
		bus = newWire()
		holder, other = replicas(bus)
	})

	It("asks to come back while the holder has no memory for another message", Label("G19"), func(ctx SpecContext) {
		holder, other := replicas(newWire(), func(o *Options) { o.Bodies = jsonrpc.NewBodyMemory(1) })
		session := holder.session(ctx, alice)
		all := holder.mcp.options.Bodies.Reserve("another")
		Eventually(func() error { return all.Extend(1) }).Should(Succeed())
		refused := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(refused.Header.Get("Retry-After")).NotTo(BeEmpty())
		all.Release()
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).To(ContainSubstring("ran read"))
	})

	It("ends the wait of a tool whose answer came to another replica and cannot be read", Label("G18"), func(ctx SpecContext) {
		session, stream, question := askForName(ctx, holder, "2025-11-25")
		sent := other.send(ctx, http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":"no"}`, question), in(session, alice)...)
		Expect(sent.StatusCode).To(Equal(http.StatusBadRequest), sent.body)
		Expect(stream.data()).To(ContainSubstring("the client's answer was refused"))
	})

	It("streams what a tool says while it runs", func(ctx SpecContext) {
		goOn := holder.withNumbers()
		session := holder.session(ctx, alice)
		answer := other.follow(ctx, http.MethodPost, "/mcp", numbers(1), in(session, alice)...)
		Expect(answer.Header.Get("X-Accel-Buffering")).To(Equal("no"))
		for i := range 3 {
			Eventually(answer.lines).Should(Receive(ContainSubstring(fmt.Sprintf(`"progress":%d`, i))))
		}
		close(goOn)
		Eventually(answer.lines).Should(Receive(ContainSubstring(`"text":"x"`)))
		Eventually(answer.lines).Should(BeClosed())
	})

	It("brings an answer of any length, one after the other", func(ctx SpecContext) {
		close(holder.withNumbers())
		session := holder.session(ctx, alice)
		const length = 10 << 20
		answer := other.send(ctx, http.MethodPost, "/mcp", numbers(length), in(session, alice)...)
		Expect(strings.Contains(answer.body, `"text":"`+strings.Repeat("x", length)+`"`)).To(BeTrue(), "%d bytes", len(answer.body))
		for _, one := range bus.all() {
			Expect(len(one.message)).To(BeNumerically("<=", MaxBusMessage))
		}
	})

	It("passes a cancellation on, wherever it arrives", func(ctx SpecContext) {
		holder.withNumbers()
		session := holder.session(ctx, alice)
		answer := other.follow(ctx, http.MethodPost, "/mcp", numbers(1), in(session, alice)...)
		Eventually(answer.lines).Should(Receive(ContainSubstring(`"progress":2`)))
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
		Expect(other.send(ctx, http.MethodPost, "/mcp", cancel, in(session, alice)...).StatusCode).To(Equal(http.StatusAccepted))
		Eventually(holder.ended).Should(Receive())
	})

	It("takes a request that needs several messages", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		padding := strings.Repeat("y", 900<<10)
		body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{},"_meta":{"padding":"` + padding + `"}}}`
		answer := other.send(ctx, http.MethodPost, "/mcp", body, in(session, alice)...)
		Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.body)
		Expect(answer.body).To(ContainSubstring("alice"))
		for _, one := range bus.all() {
			Expect(len(one.message)).To(BeNumerically("<=", MaxBusMessage))
			Expect(len(one.answer)).To(BeNumerically("<=", MaxBusMessage))
		}
	})

	It("refuses headers that fit into no message", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		huge := append(in(session, alice), "Mcp-Param-Huge", strings.Repeat("z", 600<<10))
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), huge...).StatusCode).To(Equal(http.StatusRequestHeaderFieldsTooLarge))
	})

	It("says what the holder says: status, words and headers", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		here := holder.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`, in(session, alice)...)
		there := other.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`, in(session, alice)...)
		Expect(there.StatusCode).To(And(Equal(here.StatusCode), Equal(http.StatusBadRequest)))
		Expect(there.body).To(Equal(here.body))
		Expect(there.Header.Get("Content-Type")).To(Equal(here.Header.Get("Content-Type")))
	})

	It("asks for scopes before anything crosses, and lets the policy decide there as well", Label("G10"), func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "write"), in(session, alice)...).StatusCode).To(Equal(http.StatusForbidden))
		Expect(bus.all()).To(BeEmpty())
		hidden := holder.session(ctx, bob)
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "publish"), in(hidden, bob)...).body).To(ContainSubstring("unknown tool"))
	})

	It("survives a tool that panics", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		holder.mcp.sessions = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at the disco") })
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusInternalServerError))
	})

	It("cancels what runs for a client that hangs up", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		ended := make(chan struct{})
		holder.mcp.sessions = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: 1\n\n"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(ended)
		})
		answer := other.follow(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(answer.data()).To(Equal("1"))
		Expect(answer.Body.Close()).To(Succeed())
		Eventually(ended).Should(BeClosed())
		Eventually(holder.mcp.tunnel.exchanges.count).Should(BeZero())
		Eventually(other.mcp.tunnel.exchanges.count).Should(BeZero())
	})

	It("puts no sign of life into the middle of an event", Label("G16"), func(ctx SpecContext) {
		other.mcp.open.KeepAlive = time.Millisecond
		session := holder.session(ctx, alice)
		event := "data: " + strings.Repeat("e", 3*chunk) + "\n\n"
		holder.mcp.sessions = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 5 {
				_, _ = w.Write([]byte(event))
				_ = http.NewResponseController(w).Flush()
			}
		})
		answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(strings.ReplaceAll(answer.body, ": keep-alive\n\n", "") == strings.Repeat(event, 5)).To(BeTrue())
		for part := range strings.SplitSeq(answer.body, ": keep-alive\n\n") {
			Expect(part == "" || strings.HasSuffix(part, "\n\n")).To(BeTrue())
		}
	})

	It("sends the next part when the one before was read, and none twice", func(ctx SpecContext) {
		reader, writer := net.Pipe()
		DeferCleanup(reader.Close)
		e := &exchange{out: slow{http.Header{}, writer}, ended: make(chan struct{})}
		first := make(chan kind, 2)
		go func() { first <- e.take(part{}, []byte("first")) }()
		go func() { first <- e.take(part{}, []byte("first")) }() // which nobody has heard of
		Consistently(first, "50ms").ShouldNot(Receive())
		Expect(io.ReadFull(reader, make([]byte, 5))).To(Equal(5))
		Eventually(first).Should(Receive(Equal(kindDone)))
		Eventually(first).Should(Receive(Equal(kindDone)))
		Expect(e.parts).To(Equal(1))
		Expect(e.take(part{Number: 2}, nil)).To(Equal(kindGone), "one is missing")
		e.close()
		Expect(e.take(part{Number: 1}, nil)).To(Equal(kindGone), "after the end nobody writes")
	})
})

var _ = Describe("Ending what crosses between replicas", Label("R4", "R5"), func() {
	var bus *wire
	var holder, other *site
	var session string
	BeforeEach(func(ctx SpecContext) {
		bus = newWire()
		holder, other = replicas(bus)
		session = holder.session(ctx, alice)
	})

	there := func() string { return addressOf(holder.mcp.replica) }

	It("is 404 at once when the holder has gone", func(ctx SpecContext) {
		bus.set(func() { delete(bus.listeners, there()) })
		answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
		Expect(answer.body).To(ContainSubstring("there is no such session"))
	})

	It("is 404 when the holder goes before it has said anything", func(ctx SpecContext) {
		holder.mcp.sessions = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			bus.set(func() { delete(bus.listeners, there()) })
			<-r.Context().Done()
		})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusNotFound))
	})

	It("is 503 when nobody hears anything, not even themselves", func(ctx SpecContext) {
		bus.set(func() { bus.silent[there()], bus.silent[addressOf(other.mcp.replica)] = true, true })
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusServiceUnavailable))
	})

	It("ends a stream when the holder falls silent, and the holder's share when the other does", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		bus.set(func() { bus.silent[there()], bus.silent[addressOf(other.mcp.replica)] = true, true })
		Eventually(f.lines).Should(BeClosed())
		Eventually(holder.mcp.tunnel.exchanges.count).Should(BeZero())
		bus.set(func() { clear(bus.silent) })
		listen(ctx, other, session)
	})

	It("ends a stream that only the holder has taken for lost", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		bus.set(func() { bus.silent[addressOf(other.mcp.replica)] = true })
		Eventually(holder.mcp.tunnel.exchanges.count).Should(BeZero())
		bus.set(func() { clear(bus.silent) })
		Eventually(f.lines).Should(BeClosed())
	})

	It("is 503 when the holder cannot answer", func(ctx SpecContext) {
		holder.mcp.sessions = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Huge", strings.Repeat("x", MaxBusMessage))
		})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusServiceUnavailable))
	})

	It("is 503 while the bus is down, and nothing is lost", func(ctx SpecContext) {
		bus.set(func() { bus.outage = errDown })
		answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(answer.body).NotTo(ContainSubstring("down"))
		Expect(holder.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusOK))
		other.session(ctx, alice)
		bus.set(func() { bus.outage = nil })
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(3, "read"), in(session, alice)...).body).To(ContainSubstring("ran read"))
	})

	It("ends the streams of other replicas' clients when the holder shuts down", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		holder.mcp.Drain()
		Eventually(f.lines).Should(BeClosed())
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusNotFound))
	})

	It("lets a holder that stops finish what it was asked", func(ctx SpecContext) {
		running, goOn := make(chan struct{}), make(chan struct{})
		holder.mcp.sessions = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(running)
			<-goOn
			_, _ = w.Write([]byte("done"))
		})
		answered := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			answered <- other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		}()
		Eventually(running).Should(BeClosed())
		settled := make(chan struct{})
		go func() {
			holder.mcp.Settle(ctx)
			close(settled)
		}()
		Consistently(settled, "100ms").ShouldNot(BeClosed())
		close(goOn)
		var got answer
		Eventually(answered).Should(Receive(&got))
		Expect(got.body).To(Equal("done"))
		Eventually(settled).Should(BeClosed())
	})
})
