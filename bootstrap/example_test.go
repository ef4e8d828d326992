package bootstrap_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/go-chi/chi/v5"
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

	// 1 the OAuth store, apart from the content database.
	store, err := persistence.OpenSQLite(filepath.Join(dir, "oauth.db"))
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
	// 3 the MCP server with the OAuth server attached.
	server := bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(authz))

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

// A site that uses net/http: every path without a route of the site goes to Pasteport.
func ExampleMCPServer_Handler() {
	server, stop := newServer()
	defer stop()
	endpoints, err := server.Handler()
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /about", about)
	mux.Handle("/", endpoints)

	fmt.Println(statusOf(mux, "/about"), statusOf(mux, "/mcp"),
		statusOf(mux, "/.well-known/oauth-authorization-server"))
	// Output: 200 401 200
}

// A site that uses chi: every path without a route of the site goes to Pasteport. With Gin, it is
// router.NoRoute(gin.WrapH(endpoints)).
func ExampleMCPServer_Handler_chi() {
	server, stop := newServer()
	defer stop()
	endpoints, err := server.Handler()
	if err != nil {
		log.Fatal(err)
	}
	router := chi.NewRouter()
	router.Get("/about", about)
	router.NotFound(endpoints.ServeHTTP)

	fmt.Println(statusOf(router, "/about"), statusOf(router, "/mcp"),
		statusOf(router, "/.well-known/oauth-authorization-server"))
	// Output: 200 401 200
}

// newServer takes the first three steps. The caller calls stop after the http.Server has shut down.
func newServer() (server *bootstrap.MCPServer, stop func()) {
	dir, err := os.MkdirTemp("", "pasteport-example")
	if err != nil {
		log.Fatal(err)
	}
	store, err := persistence.OpenSQLite(filepath.Join(dir, "oauth.db"))
	if err != nil {
		log.Fatal(err)
	}
	authz, err := bootstrap.NewOAuthServer(oauth.Config{
		Issuer:       "https://cms.example.com",
		VerifyBearer: func(token string) bool { return site.Knows(token) },
	}, store)
	if err != nil {
		log.Fatal(err)
	}
	tools := mcp.NewServer(&mcp.Implementation{Name: "cms", Version: "1.0.0"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "greet", Description: "Greets a person"}, greet)
	return bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(authz)), func() {
		authz.Close()
		if err := store.Close(); err != nil {
			log.Fatal(err)
		}
		_ = os.RemoveAll(dir)
	}
}

// about is a page of the site.
func about(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "about") }

// statusOf returns the status of a GET request.
func statusOf(site http.Handler, path string) int {
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code
}
