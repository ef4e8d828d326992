package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Responses that take longer than the deadlines of the server", Label("G16"), func() {
	const deadline = 50 * time.Millisecond
	var s *site
	var release chan struct{}
	BeforeEach(func() {
		s = openSiteOn(func(server *http.Server) { server.ReadTimeout, server.WriteTimeout = deadline, deadline })
		release = make(chan struct{})
		sdk.AddTool(s.sdk, &sdk.Tool{Name: "wait"},
			func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
				s.holds <- struct{}{}
				select {
				case <-release:
					return text("waited"), nil, nil
				case <-ctx.Done():
					return nil, nil, ctx.Err()
				}
			})
	})

	It("do not end with a slow call", func(ctx SpecContext) {
		answers := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			answers <- s.send(ctx, http.MethodPost, "/mcp", modern("tools/call", `"name":"wait"`),
				modernHeaders(alice, "tools/call", "wait")...)
		}()
		Eventually(s.holds).WithTimeout(5 * time.Second).Should(Receive())
		Consistently(answers, 4*deadline).ShouldNot(Receive())
		close(release)
		Eventually(answers).WithTimeout(5 * time.Second).Should(Receive(WithTransform(func(a answer) string {
			return a.body
		}, ContainSubstring("waited"))))
	}, SpecTimeout(10*time.Second))

	It("do not end with a slow upstream that answers without a stream", func(ctx SpecContext) {
		behind := &patient{called: make(chan struct{}, 1), release: release}
		e := echo.New()
		server := httptest.NewUnstartedServer(e)
		server.Config.WriteTimeout = deadline
		NewGateway(behind, Options{
			Issuer:        issuer,
			Resource:      oauth.NewResource(canonical),
			Scopes:        catalogue(),
			Authorization: s.tokens,
			Keys:          seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)}),
			AllowedHosts:  []string{server.Listener.Addr().String()},
		}).Mount(e)
		server.Start()
		DeferCleanup(server.Close)
		gateway := &site{Server: server}
		answers := make(chan string, 1)
		go func() {
			defer GinkgoRecover()
			answers <- gateway.send(ctx, http.MethodPost, "/mcp", call(1, "read"), as(bob)...).body
		}()
		Eventually(behind.called).WithTimeout(5 * time.Second).Should(Receive())
		Consistently(answers, 4*deadline).ShouldNot(Receive())
		close(release)
		Eventually(answers).WithTimeout(5 * time.Second).Should(Receive(Equal("{}")))
	}, SpecTimeout(10*time.Second))

	DescribeTable("keep an idle stream open", func(ctx SpecContext, headers func(ctx context.Context) []string) {
		stream := s.follow(ctx, http.MethodGet, "/mcp", "", append(headers(ctx), "Accept", jsonrpc.EventStream)...)
		Expect(stream.StatusCode).To(Equal(http.StatusOK))
		Consistently(func() bool {
			select {
			case _, open := <-stream.lines:
				return open
			default:
				return true
			}
		}, 4*deadline).Should(BeTrue())
		streams, _ := s.mcp.Open()
		Expect(streams).To(Equal(1))
	},
		Entry("of HTTP+SSE", func(context.Context) []string { return as(alice) }, SpecTimeout(10*time.Second)),
		Entry("of a session", func(ctx context.Context) []string {
			return in(s.session(ctx, alice), alice)
		}, SpecTimeout(10*time.Second)),
	)
})

// patient is an upstream that answers only when it is released.
type patient struct{ called, release chan struct{} }

// Forward implements Upstream.
func (p *patient) Forward(w http.ResponseWriter, _ *http.Request, _ []byte, _ oauth.Caller, _ oauth.HostToken) error {
	p.called <- struct{}{}
	<-p.release
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte("{}"))
	return err
}

// Deliver implements Upstream.
func (p *patient) Deliver(w http.ResponseWriter, r *http.Request, body []byte, caller oauth.Caller,
	host oauth.HostToken) error {
	return p.Forward(w, r, body, caller, host)
}
