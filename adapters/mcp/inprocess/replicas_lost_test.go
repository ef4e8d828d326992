package inprocess

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/replica"
)

var _ = Describe("Losing another replica", Label("R4", "R5"), func() {
	var bus *wire
	var holder, other *site
	var session string
	BeforeEach(func(ctx SpecContext) {
		bus = newWire()
		holder, other = replicas(bus)
		session = holder.session(ctx, alice)
	})

	there := func() string { return addressOf(holder.mcp.replica) }

	It("is 404 at once when the owner of the session has gone", func(ctx SpecContext) {
		bus.set(func() { delete(bus.listeners, there()) })
		answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
		Expect(answer.body).To(ContainSubstring("there is no such session"))
	})

	It("is 404 when the owner goes before it has answered", func(ctx SpecContext) {
		holder.mcp.sessions = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			bus.set(func() { delete(bus.listeners, there()) })
			<-r.Context().Done()
		})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusNotFound))
	})

	It("is 503 when the bus delivers no messages", func(ctx SpecContext) {
		bus.set(func() { bus.silent[there()], bus.silent[addressOf(other.mcp.replica)] = true, true })
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusServiceUnavailable))
	})

	It("ends both halves of a stream when either replica is silent", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		bus.set(func() { bus.silent[there()], bus.silent[addressOf(other.mcp.replica)] = true, true })
		Eventually(f.lines).Should(BeClosed())
		Eventually(holder.mcp.forwarder.Pending).Should(BeZero())
		bus.set(func() { clear(bus.silent) })
		listen(ctx, other, session)
	})

	It("ends a stream that only the owner has given up", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		bus.set(func() { bus.silent[addressOf(other.mcp.replica)] = true })
		Eventually(holder.mcp.forwarder.Pending).Should(BeZero())
		bus.set(func() { clear(bus.silent) })
		Eventually(f.lines).Should(BeClosed())
	})

	It("is 503 when the owner cannot answer", func(ctx SpecContext) {
		holder.mcp.sessions = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Huge", strings.Repeat("x", replica.MaxMessage))
		})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusServiceUnavailable))
	})

	It("is 503 while the bus is down, and keeps the session", func(ctx SpecContext) {
		bus.set(func() { bus.outage = errDown })
		answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(answer.body).NotTo(ContainSubstring("down"))
		Expect(holder.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusOK))
		other.session(ctx, alice)
		bus.set(func() { bus.outage = nil })
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(3, "read"), in(session, alice)...).body).
			To(ContainSubstring("ran read"))
	})

	It("ends the streams of other replicas' clients when the owner shuts down", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		holder.mcp.Drain()
		Eventually(f.lines).Should(BeClosed())
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusNotFound))
	})

	It("lets an owner that stops finish forwarded requests", func(ctx SpecContext) {
		running, proceed := make(chan struct{}), make(chan struct{})
		holder.mcp.sessions = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(running)
			<-proceed
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
			holder.mcp.WaitForReplicas(ctx)
			close(settled)
		}()
		Consistently(settled, "100ms").ShouldNot(BeClosed())
		close(proceed)
		var got answer
		Eventually(answered).Should(Receive(&got))
		Expect(got.body).To(Equal("done"))
		Eventually(settled).Should(BeClosed())
	})
})
