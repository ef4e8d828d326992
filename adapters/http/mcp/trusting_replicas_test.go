package mcp

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Trusting what comes over the bus", Label("R2", "R3"), func() {
	var bus *wire
	var holder, other *site
	var session string
	var ahead []*atomic.Int64 // the clocks of the replicas
	BeforeEach(func(ctx SpecContext) {
		bus, ahead = newWire(), nil
		holder, other = replicas(bus, func(o *Options) {
			by := new(atomic.Int64)
			ahead = append(ahead, by)
			o.Now = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
		})
		session = holder.session(ctx, alice)
	})

	It("sends nothing for a session of another grant, or one that was made up", func(ctx SpecContext) {
		for _, name := range []string{session, session + "x", "x" + session, holder.mcp.replica + ".x.y", "none", ".", ".."} {
			answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(name, bob)...)
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound), name)
			Expect(answer.body).To(ContainSubstring("there is no such session"))
		}
		Expect(bus.all()).To(BeEmpty())
	})

	It("sends no token, not even sealed", func(ctx SpecContext) {
		spoiled := append(in(session, alice), "Cookie", "c="+alice, "X-Forwarded-Access-Token", alice, "Proxy-Authorization", alice, "Mcp-Param-A", "kept")
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "whoami"), spoiled...).body).To(ContainSubstring("alice"))
		Expect(len(bus.all())).To(BeNumerically(">=", 2))
		opened := ""
		for _, one := range bus.all() {
			Expect(string(one.message)).NotTo(ContainSubstring("whoami"), "sealed")
			for _, replica := range []string{holder.mcp.replica, other.mcp.replica} {
				if plain, err := holder.mcp.options.Keys.OpenMessage(replica, one.message); err == nil {
					opened += string(plain)
				}
			}
		}
		Expect(opened).To(And(ContainSubstring("whoami"), ContainSubstring("Mcp-Param-A"), Not(ContainSubstring(alice))))
	})

	It("calls nothing for a message that was recorded, now or later", func(ctx SpecContext) {
		ran := make(chan struct{}, 8)
		holder.sdk.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				ran <- struct{}{}
				return next(ctx, method, req)
			}
		})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusOK))
		Expect(ran).To(Receive())
		again := func() {
			for _, one := range bus.all() {
				_, _ = bus.Ask(ctx, one.address, one.message)
				_, _ = bus.Ask(ctx, addressOf(other.mcp.replica), one.message)
			}
		}
		again()
		ahead[0].Store(int64(freshness + time.Second))
		ahead[1].Store(int64(freshness + time.Second))
		again()
		Consistently(ran, "100ms").ShouldNot(Receive())
		Eventually(holder.mcp.tunnel.exchanges.count).Should(BeZero())
	})

	It("remembers an exchange for longer than its message is fresh", func() {
		var met memory
		start := time.Now()
		Expect(met.first("a", start)).To(BeTrue())
		for after := time.Duration(0); after <= 2*freshness; after += time.Second {
			Expect(met.first("a", start.Add(after))).To(BeFalse())
			Expect(met.first(fmt.Sprint(after), start.Add(after))).To(BeTrue())
		}
		met = memory{}
		for i := range 1000 {
			met.first(fmt.Sprint(i), start.Add(time.Duration(i)*freshness))
		}
		Expect(len(met.newer) + len(met.older)).To(BeNumerically("<", 10))
	})

	It("is 503, and says why in the log, when the clocks are too far apart", func(ctx SpecContext) {
		ahead[0].Store(int64(time.Minute))
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).To(Equal(http.StatusServiceUnavailable))
	})

	It("takes nothing that was not sealed with the server secret", func(ctx SpecContext) {
		forged, err := frame{Kind: kindBeat, ID: "x", From: other.mcp.replica, At: time.Now()}.
			seal(seal.NewKeyRing(seal.FixedSecrets{bytes.Repeat([]byte{9}, 32)}), holder.mcp.replica)
		Expect(err).NotTo(HaveOccurred())
		for _, message := range [][]byte{forged, nil, []byte("{}"), bytes.Repeat([]byte("x"), 100)} {
			Expect(bus.Ask(ctx, addressOf(holder.mcp.replica), message)).To(Equal(unopened))
		}
	})

	It("lets only a message of another replica wait, and it keeps nobody else waiting", func() {
		waiting := &exchange{id: "slow", with: other.mcp.replica, ended: make(chan struct{})}
		holder.mcp.tunnel.exchanges.add(waiting)
		waiting.mu.Lock()
		box, err := frame{Kind: kindPart, ID: "x", From: other.mcp.replica, At: time.Now(), Exchange: "slow", Part: &part{}}.
			seal(holder.mcp.tunnel.keys, holder.mcp.replica)
		Expect(err).NotTo(HaveOccurred())
		answers := make(chan []byte, 2)
		taken := make(chan struct{})
		go func() {
			holder.mcp.tunnel.take(box, func(answer []byte) { answers <- answer })
			close(taken)
		}()
		Eventually(taken).Should(BeClosed())
		holder.mcp.tunnel.take([]byte("forged"), func(answer []byte) { answers <- answer })
		Expect(answers).To(Receive(Equal(unopened)), "before take returned")
		waiting.mu.Unlock()
		Eventually(answers).Should(Receive())
	})

	It("names its sessions again after the server secret was replaced", func(ctx SpecContext) {
		first, second := make([]byte, 32), bytes.Repeat([]byte{2}, 32)
		for _, s := range []*site{holder, other} {
			s.mcp.options.Keys = seal.NewKeyRing(seal.FixedSecrets{second, first})
			s.mcp.tunnel.keys = s.mcp.options.Keys
		}
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).To(ContainSubstring("ran read"))
	})
})
