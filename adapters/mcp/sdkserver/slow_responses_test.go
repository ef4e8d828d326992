package sdkserver

import (
	"context"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
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

	DescribeTable("keep an idle stream open", func(ctx SpecContext, headers func(ctx context.Context) []string) {
		stream := s.follow(ctx, http.MethodGet, "/mcp", "", append(headers(ctx), "Accept", message.EventStream)...)
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
