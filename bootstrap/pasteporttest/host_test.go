package pasteporttest_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// library is an example of a host.
type library struct {
	*echo.Echo
	authz *bootstrap.OAuthServer
}

// libraryConfig returns the production config of the library.
func libraryConfig() oauth.Config {
	return oauth.Config{
		Issuer: "https://library.example",
		Verifier: members{
			"ada-token": {Subject: "ada", Scopes: []string{"books:read", "books:write"}},
			"bob-token": {Subject: "bob", Scopes: []string{"books:read"}},
		},
		Scopes: []oauth.Scope{{Name: "books:read", Description: "Read books"},
			{Name: "books:write", Description: "Write books"}},
		MoreServers: []oauth.ProtectedServer{{Resource: "https://library.example/archive/mcp", Name: "Archive"}},
	}
}

// members are the tokens of the library with their owners.
type members map[string]oauth.Principal

// VerifyBearer implements oauth.BearerVerifier.
func (m members) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	if owner, known := m[token]; known {
		return owner, nil
	}
	return oauth.Principal{}, oauth.ErrUnknownBearer
}

type title struct {
	Title string `json:"title"`
}

// newLibrary builds the library in the four steps of a host.
func newLibrary(t testing.TB, config oauth.Config, options ...bootstrap.OAuthOption) *library {
	t.Helper()
	store, err := persistence.OpenSQLite(filepath.Join(t.TempDir(), "oauth.db"))
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	authz, err := bootstrap.NewOAuthServer(config, store, options...)
	check(t, err)
	t.Cleanup(authz.Close)
	l := &library{echo.New(), authz}
	check(t, bootstrap.NewMCPServer(bookTools(), bootstrap.WithOAuth(authz), bootstrap.WithToolScopes(scopesOf)).
		Register(l.Echo))
	for _, more := range config.MoreServers {
		archive := mcp.NewServer(&mcp.Implementation{Name: "archive", Version: "1"}, nil)
		check(t, bootstrap.NewMCPServer(archive, bootstrap.WithOAuth(authz), bootstrap.WithResource(more.Resource)).
			Register(l.Echo))
	}
	return l
}

func bookTools() *mcp.Server {
	tools := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	answer := func(_ context.Context, request *mcp.CallToolRequest, book title) (*mcp.CallToolResult, any, error) {
		caller, _ := bootstrap.CallerOf(request)
		return &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: book.Title + " for " + caller.Subject}}}, nil, nil
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "read", Description: "Reads a book"}, answer)
	mcp.AddTool(tools, &mcp.Tool{Name: "write", Description: "Writes a book"}, answer)
	return tools
}

func scopesOf(tool string) oauth.Scopes { return oauth.NewScopes("books:" + tool) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
