package bootstrap_test

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// sharedStore is a store that other machines may use too.
type sharedStore struct{ *persistence.Store }

func (sharedStore) SharedByReplicas() bool { return true }

func onServer(store *persistence.Store) oauth.Store { return sharedStore{store} }

func inFile(store *persistence.Store) oauth.Store { return store }

var _ = Describe("A host with several processes on one store", func() {
	const issuer = "https://cms.example"
	var folder string
	BeforeEach(func() { folder = GinkgoT().TempDir() })

	// process is another process on the same folder; plain ones have a store that is no
	// oauth.EndWatcher.
	process := func(plain bool) *host {
		GinkgoHelper()
		store, err := persistence.OpenSQLite(filepath.Join(folder, "oauth.db"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(store.Close()).To(Succeed()) })
		config := oauth.Config{Issuer: issuer}
		if plain {
			config.Secrets = store
			return openHost(config, struct{ oauth.Store }{store}, nil)
		}
		return openHost(config, store, nil)
	}
	// listening returns a subscription of a client there.
	listening := func(ctx context.Context, at *host) (lines <-chan string, tokens tokenAnswer) {
		GinkgoHelper()
		site := mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)
		mcp.AddTool(site, &mcp.Tool{Name: "read"},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
		e := echo.New()
		protected := bootstrap.NewMCPServer(site, bootstrap.WithOAuth(at.authz))
		Expect(protected.Register(e)).To(Succeed())
		server := httptest.NewServer(e)
		DeferCleanup(server.Close)
		DeferCleanup(server.CloseClientConnections)
		DeferCleanup(protected.Drain)
		tokens = tokensOf(at.exchange(at.code()))
		lines = subscribe(ctx, server.URL+"/mcp", tokens.Access)
		Eventually(lines).WithContext(ctx).WithTimeout(10 * time.Second).
			Should(Receive(ContainSubstring("notifications/subscriptions/acknowledged")))
		return lines, tokens
	}

	DescribeTable("is warned that sessions are not shared", Label("R1"),
		func(shared func(*persistence.Store) oauth.Store, options []bootstrap.MCPOption, warned types.GomegaMatcher) {
			var log bytes.Buffer
			config := oauth.Config{
				Issuer:       issuer,
				VerifyBearer: func(string) bool { return true },
				Logger:       slog.New(slog.NewTextHandler(&log, nil)),
			}
			authz, err := bootstrap.NewOAuthServer(config, shared(openStore()))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(authz.Close)
			server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
				append(options, bootstrap.WithOAuth(authz))...)
			Expect(server.Register(echo.New())).To(Succeed())
			Expect(log.String()).To(warned)
		},
		Entry("if they share the store without addresses", onServer, nil,
			And(ContainSubstring("level=WARN"), ContainSubstring("set advertise (WithPeers)"))),
		Entry("but not with addresses", onServer, []bootstrap.MCPOption{bootstrap.WithPeers("http://10.0.1.7:8080")},
			BeEmpty()),
		Entry("but not if they share no store", inFile, nil, BeEmpty()),
	)

	DescribeTable("closes the streams of grants that it ends itself, with any store:",
		Label("G16", "E9"), func(ctx SpecContext, end func(context.Context, *host, tokenAnswer)) {
			only := process(true)
			lines, tokens := listening(ctx, only)
			end(ctx, only, tokens)
			Eventually(lines).WithContext(ctx).WithTimeout(10 * time.Second).Should(BeClosed())
		},
		Entry("a grant that the client revokes", func(_ context.Context, at *host, tokens tokenAnswer) {
			Expect(at.post("/oauth/revoke", url.Values{"token": {tokens.Refresh}}).Code).To(Equal(http.StatusOK))
		}),
		Entry("a grant that the site ends", func(ctx context.Context, at *host, _ tokenAnswer) {
			Expect(at.authz.EndGrantsOf(ctx, hostToken)).To(Equal(1))
		}),
	)
})

// subscribe subscribes to changes of the list of tools. The returned channel is closed at the end
// of the stream.
func subscribe(ctx context.Context, endpoint, access string) <-chan string {
	GinkgoHelper()
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{` +
		`"toolsListChanged":true},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for name, value := range map[string]string{
		"Content-Type":         "application/json",
		"Accept":               "application/json, text/event-stream",
		"Authorization":        "Bearer " + access,
		"MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "subscriptions/listen",
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		defer response.Body.Close()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			if scanner.Text() != "" {
				lines <- scanner.Text()
			}
		}
	}()
	return lines
}
