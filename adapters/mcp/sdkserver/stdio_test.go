package sdkserver

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Serving a local client", func() {
	serve := func(ctx context.Context, s *site, caller oauth.Caller) (*sdk.IOTransport, chan error) {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.mcp.ServeStdio(ctx, fromClient, toClient, caller) }()
		return &sdk.IOTransport{Reader: fromServer, Writer: toServer}, ended
	}

	DescribeTable("passes the caller to tools, with the same policy",
		func(ctx SpecContext, version string) {
			s := openSite()
			transport, _ := serve(ctx, s, oauth.Caller{Subject: "me", Scopes: oauth.NewScopes("mcp:read")})
			client := s.connect(ctx, transport, version)
			listed, err := client.ListTools(ctx, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(names(listed.Tools)).To(ConsistOf("read", "write", "hold", "whoami"))
			result, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "whoami"})
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Content[0].(*sdk.TextContent).Text).To(Equal("me"))
			_, err = client.CallTool(ctx, &sdk.CallToolParams{Name: "write"})
			Expect(err).To(MatchError(ContainSubstring("insufficient scope")))
			_, err = client.CallTool(ctx, &sdk.CallToolParams{Name: "publish"})
			Expect(err).To(MatchError(ContainSubstring("unknown tool")))
		},
		Entry("over 2025-11-25", "2025-11-25"), Entry("over 2026-07-28", "2026-07-28"),
	)

	It("ends with its context", func(ctx SpecContext) {
		s := openSite()
		serving, stop := context.WithCancel(ctx)
		transport, ended := serve(serving, s, oauth.Caller{Subject: "me"})
		s.connect(ctx, transport, "")
		stop()
		Eventually(ended).Should(Receive(MatchError(context.Canceled)))
	})
})
