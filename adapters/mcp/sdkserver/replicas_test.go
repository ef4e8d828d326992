package sdkserver

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/domain/seal"
)

// replicas are two sites with the same tokens that reach each other.
func replicas(change ...func(*Options)) (holder, other *site) {
	GinkgoHelper()
	change = append(change, func(o *Options) {
		o.Options = o.WithDefaults()
		o.Peers = peers.New(peers.Options{
			Address:  "http://" + o.AllowedHosts[0],
			Resource: o.Resource,
			Keys:     seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)}),
			Now:      o.Now,
			Logger:   o.Logger,
		})
		o.Sessions = o.Peers
	})
	holder = openSite(change...)
	other = openSite(append(change, func(o *Options) { o.Authorization = holder.tokens })...)
	other.tokens = holder.tokens
	return holder, other
}

var _ = Describe("Sessions of other replicas", Label("R1"), func() {
	var holder, other *site
	BeforeEach(func() { holder, other = replicas() })

	It("answer 503 while the owner has no memory for another message", Label("G19"), func(ctx SpecContext) {
		holder, other := replicas(func(o *Options) { o.Bodies = message.NewBodyMemory(1) })
		session := holder.session(ctx, alice)
		all := holder.mcp.options.Bodies.Reserve("another")
		Eventually(func() error { return all.Extend(1) }).Should(Succeed())
		refused := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(refused.Header.Get("Retry-After")).NotTo(BeEmpty())
		all.Release()
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).
			To(ContainSubstring("ran read"))
	})

	It("end the wait of a tool for a response that another replica refuses", Label("G18"), func(ctx SpecContext) {
		session, stream, question := askForName(ctx, holder, "2025-11-25")
		sent := other.send(ctx, http.MethodPost, "/mcp",
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":"no"}`, question), in(session, alice)...)
		Expect(sent.StatusCode).To(Equal(http.StatusBadRequest), sent.body)
		Expect(stream.data()).To(ContainSubstring("the client's answer was refused"))
	})

	It("send no keep-alive comment inside an event", Label("G16"), func(ctx SpecContext) {
		other.mcp.responses.KeepAlive = time.Millisecond
		session := holder.session(ctx, alice)
		event := "data: " + strings.Repeat("e", 3<<18) + "\n\n"
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
})
