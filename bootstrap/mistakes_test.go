package bootstrap_test

import (
	"context"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Embedding with mistakes", Label("F9"), func() {
	It("reports an option that is nil, also of a probe", func() {
		_, err := bootstrap.NewClientProbe(oauth.Config{}, nil)
		Expect(err).To(MatchError("option 1 is nil: leave it out"))
		Expect(bootstrap.NewClientProbe(oauth.Config{}, bootstrap.WithRootCAs(nil))).NotTo(BeNil())
	})

	It("needs a server of the SDK", func() {
		server := bootstrap.NewMCPServer(nil)
		Expect(server.Register(echo.New())).To(MatchError(ContainSubstring("the MCP server is nil")))
		Expect(server.ServeStdio(context.Background(), nil, nil, oauth.Caller{})).
			To(MatchError(ContainSubstring("the MCP server is nil")))
		server.Drain()
	})
})
