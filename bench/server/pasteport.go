package server

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"path/filepath"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// pasteport is a site with Pasteport built in, as README.md shows it.
type pasteport struct {
	site  bool // with what sites have around everything
	tools bool // the SDK's server is protected, and not the common handler
}

func (p pasteport) open(order Order, address string) (site, error) {
	store, err := openStore(order)
	if err != nil {
		return site{}, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(order.Roots)
	authz, err := bootstrap.NewOAuthServer(oauth.Config{
		Issuer: address, AllowLoopbackIssuer: true, AllowLoopbackClients: true, // nothing here leaves this computer
		VerifyBearer: func(token string) bool { return token == load.HostToken },
		Logger:       quiet(),
	}, store, bootstrap.WithRootCAs(roots))
	if err != nil {
		return site{}, errors.Join(err, store.Close())
	}
	server := bootstrap.Guard(answerCaller, bootstrap.WithOAuth(authz))
	if p.tools {
		server = bootstrap.NewMCPServer(greeter(), bootstrap.WithOAuth(authz))
	}
	e := newEcho()
	if p.site {
		asSites(e)
	}
	end := func() error {
		server.Drain()
		authz.Close()
		return store.Close()
	}
	return site{e, end}, server.Register(e)
}

func openStore(order Order) (*persistence.Store, error) {
	if order.Database == "" {
		return persistence.OpenSQLite(filepath.Join(order.Dir, "oauth.db"))
	}
	return persistence.OpenServer(order.Database, persistence.ServerOptions{SecretFile: filepath.Join(order.Dir, "secret")})
}

type greeting struct {
	Name string `json:"name"`
}

// greeter has the one tool that both sides of the comparison with the SDK call.
func greeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets somebody"},
		func(_ context.Context, _ *mcp.CallToolRequest, to greeting) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + to.Name}}}, nil, nil
		})
	return server
}

// sdkAlone is the SDK's own handlers with the same settings and nobody in front of them.
func sdkAlone(Order, string) (site, error) {
	server := greeter()
	get := func(*http.Request) *mcp.Server { return server }
	stateful := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	legacy := mcp.NewSSEHandler(get, nil)
	e := newEcho()
	e.Any("/mcp", func(c echo.Context) error {
		next := http.Handler(stateful)
		switch r := c.Request(); {
		case r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
			next = stateless
		case r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") == "", r.URL.Query().Has("sessionid"):
			next = legacy
		}
		next.ServeHTTP(c.Response(), c.Request())
		return nil
	})
	return site{e, still}, nil
}
