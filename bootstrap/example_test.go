package bootstrap_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// site stands for the host's own code, which has the tokens of its users.
var site = knownTokens{"cms_4711": true}

type knownTokens map[string]bool

func (k knownTokens) Knows(token string) bool { return k[token] }

type greeting struct {
	Name string `json:"name" jsonschema:"who is greeted"`
}

func greet(_ context.Context, _ *mcp.CallToolRequest, to greeting) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + to.Name}}}, nil, nil
}

// The four steps to protect an MCP server of a site with OAuth 2.1.
func Example() {
	dir, err := os.MkdirTemp("", "pasteport-example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	store, err := persistence.OpenSQLite(filepath.Join(dir, "oauth.db")) // 1 the OAuth store, apart from the content database
	if err != nil {
		log.Fatal(err)
	}
	authz, err := bootstrap.NewOAuthServer(oauth.Config{ // 2 the OAuth server from a Config and the store
		Issuer:       "https://cms.example.com",
		VerifyBearer: func(token string) bool { return site.Knows(token) },
	}, store)
	if err != nil {
		log.Fatal(err)
	}

	tools := mcp.NewServer(&mcp.Implementation{Name: "cms", Version: "1.0.0"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "greet", Description: "Greets a person"}, greet)
	server := bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(authz)) // 3 the MCP server with the OAuth server attached

	e := echo.New()
	if err := server.Register(e); err != nil { // 4 every endpoint, mounted on the site's Echo
		log.Fatal(err)
	}
	fmt.Println("ready for e.Start")

	authz.Close()
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: ready for e.Start
}
