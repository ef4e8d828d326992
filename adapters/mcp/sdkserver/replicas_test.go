package sdkserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

// withNumbers adds a tool that reports progress three times, waits, and returns a text of the given
// length.
func (s *site) withNumbers() (proceed chan struct{}) {
	proceed = make(chan struct{})
	type input struct {
		Length int `json:"length"`
	}
	sdk.AddTool(s.sdk, &sdk.Tool{Name: "numbers"},
		func(ctx context.Context, r *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
			for i := range 3 {
				_ = r.Session.NotifyProgress(ctx,
					&sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
			}
			select {
			case <-proceed:
			case <-ctx.Done():
				s.ended <- struct{}{}
				return nil, nil, ctx.Err()
			}
			return text(strings.Repeat("x", in.Length)), nil, nil
		})
	return proceed
}

func numbers(length int) string {
	return fmt.Sprintf(
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"numbers","arguments":{"length":%d},"_meta":{`+
			`"progressToken":"p"}}}`, length)
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

	It("return responses of any length", func(ctx SpecContext) {
		close(holder.withNumbers())
		session := holder.session(ctx, alice)
		const length = 10 << 20
		answer := other.send(ctx, http.MethodPost, "/mcp", numbers(length), in(session, alice)...)
		Expect(strings.Contains(answer.body, `"text":"`+strings.Repeat("x", length)+`"`)).
			To(BeTrue(), "%d bytes", len(answer.body))
	})

	It("resume a response at another replica", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		called := other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		_, begin, _ := strings.Cut(called.body, "id: ")
		begin, _, _ = strings.Cut(begin, "\n")
		Expect(other.send(ctx, http.MethodGet, "/mcp", "", append(in(session, alice), "Accept", "text/event-stream",
			"Last-Event-ID", begin)...).body).To(And(ContainSubstring("ran read"), ContainSubstring(`"id":2,`)))
	})

	It("return the status, body and headers of the owner", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		here := holder.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`,
			in(session, alice)...)
		there := other.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`,
			in(session, alice)...)
		Expect(there.StatusCode).To(And(Equal(here.StatusCode), Equal(http.StatusBadRequest)))
		Expect(there.body).To(Equal(here.body))
		Expect(there.Header.Get("Content-Type")).To(Equal(here.Header.Get("Content-Type")))
	})

	It("check scopes before forwarding, and the policy again at the owner", Label("G10"), func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "write"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusForbidden))
		hidden := holder.session(ctx, bob)
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "publish"), in(hidden, bob)...).body).
			To(ContainSubstring("unknown tool"))
	})

	It("answer 503 when the other replica ends without an answer", func(ctx SpecContext) {
		session := holder.session(ctx, alice)
		holder.mcp.sessions = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at the disco") })
		Expect(other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).StatusCode).
			To(Equal(http.StatusServiceUnavailable))
	})

	It("cancel the call of a client that hangs up", func(ctx SpecContext) {
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
