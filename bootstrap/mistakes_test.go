package bootstrap_test

import (
	"context"
	"path/filepath"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Embedding with mistakes", Label("F9"), func() {
	It("reports all mistakes at once, with their remedies", func() {
		store, err := persistence.OpenSQLite(filepath.Join(GinkgoT().TempDir(), "oauth.db"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		_, err = bootstrap.NewOAuthServer(oauth.Config{Issuer: "http://cms.example.com/", AccessTokenTTL: 1}, store)
		Expect(err).To(MatchError(And(ContainSubstring("Issuer "), ContainSubstring("VerifyBearer is nil: set"),
			ContainSubstring("AccessTokenTTL is 1ns: choose"))))
	})

	It("reports an option that is nil, also of a probe", func() {
		_, err := bootstrap.NewClientProbe(oauth.Config{}, nil)
		Expect(err).To(MatchError("option 1 is nil: leave it out"))
		Expect(bootstrap.NewClientProbe(oauth.Config{}, bootstrap.WithRootCAs(nil))).NotTo(BeNil())
	})

	It("needs a store", func() {
		_, err := bootstrap.NewOAuthServer(oauth.Config{}, nil)
		Expect(err).To(MatchError(ContainSubstring("the store is nil: open one")))
	})

	It("needs an OAuth server to be registered, and none for stdio", func() {
		server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil))
		Expect(server.Register(echo.New())).To(MatchError(ContainSubstring("pass WithOAuth")))
	})

	It("needs a server of the SDK", func() {
		server := bootstrap.NewMCPServer(nil)
		Expect(server.Register(echo.New())).To(MatchError(ContainSubstring("the MCP server is nil")))
		Expect(server.ServeStdio(context.Background(), nil, nil, oauth.Caller{})).
			To(MatchError(ContainSubstring("the MCP server is nil")))
		server.Drain()
	})
})
