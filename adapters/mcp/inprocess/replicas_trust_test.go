package inprocess

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Trust in messages of the bus", Label("R2", "R3"), func() {
	var bus *wire
	var holder, other *site
	var session string
	var ahead []*atomic.Int64 // the clocks of the replicas
	var secrets *rotated
	BeforeEach(func(ctx SpecContext) {
		bus, ahead, secrets = newWire(), nil, new(rotated)
		secrets.Store(&[][]byte{make([]byte, 32)})
		holder, other = replicas(bus, func(o *Options) {
			by := new(atomic.Int64)
			ahead = append(ahead, by)
			o.Keys = seal.NewKeyRing(secrets)
			o.Now = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
		})
		session = holder.session(ctx, alice)
	})

	It("sends nothing for a session of another grant or a made-up one", func(ctx SpecContext) {
		for _, name := range []string{session, session + "x", "x" + session, holder.mcp.replica + ".x.y", "none",
			".", ".."} {
			answer := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(name, bob)...)
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound), name)
			Expect(answer.body).To(ContainSubstring("there is no such session"))
		}
		Expect(bus.all()).To(BeEmpty())
	})

	It("sends no token, not even a sealed one", func(ctx SpecContext) {
		tainted := append(in(session, alice), "Cookie", "c="+alice, "X-Forwarded-Access-Token", alice,
			"Proxy-Authorization", alice, "Mcp-Param-A", "kept")
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "whoami"), tainted...).body).
			To(ContainSubstring("alice"))
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
		Expect(opened).To(And(ContainSubstring("whoami"), ContainSubstring("Mcp-Param-A"),
			Not(ContainSubstring(alice))))
	})

	It("ignores a replayed message, now and later", func(ctx SpecContext) {
		ran := make(chan struct{}, 8)
		holder.sdk.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				ran <- struct{}{}
				return next(ctx, method, req)
			}
		})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusOK))
		Expect(ran).To(Receive())
		again := func() {
			for _, one := range bus.all() {
				_, _ = bus.Ask(ctx, one.address, one.message)
				_, _ = bus.Ask(ctx, addressOf(other.mcp.replica), one.message)
			}
		}
		again()
		ahead[0].Store(int64(31 * time.Second))
		ahead[1].Store(int64(31 * time.Second))
		again()
		Consistently(ran, "100ms").ShouldNot(Receive())
		Eventually(holder.mcp.forwarder.Pending).Should(BeZero())
	})

	It("is 503, and logs the reason, when the clocks are too far apart", func(ctx SpecContext) {
		ahead[0].Store(int64(time.Minute))
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusServiceUnavailable))
	})

	It("binds sessions again after the server secret was replaced", func(ctx SpecContext) {
		first, second := make([]byte, 32), bytes.Repeat([]byte{2}, 32)
		secrets.Store(&[][]byte{second, first})
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).
			To(ContainSubstring("ran read"))
	})
})
