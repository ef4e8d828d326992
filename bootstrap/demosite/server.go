package demosite

import (
	"context"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/domain/oauth"
)

const instructions = `A small content management site.
Articles are Markdown texts that are drafts, published or archived.
Your role decides which tools you may use:
a reader reads published articles, an author also writes drafts, and an editor may use all tools.
A new article is a draft; tell the person its slug, and publish it only when asked to.`

// MCPServer serves the site's articles as tools and as resources. callerOf returns the caller of a
// request. A request without a caller is refused.
func (s *Site) MCPServer(callerOf func(mcp.Request) (oauth.Caller, bool)) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "demosite", Title: "Demo site", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions: instructions,
			SchemaCache:  schemas,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = private },
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{},
				Resources: &mcp.ResourceCapabilities{}},
		})
	tools := &toolServer{site: s, server: server, callerOf: callerOf}
	tools.addTools()
	tools.addResources()
	return server
}

// schemas is shared by all servers of the process, because deriving schemas from the tools' types
// is the most expensive part of MCPServer.
var schemas = mcp.NewSchemaCache()

// private is the cache scope of all results, because they depend on the caller's role.
const private = "private"

// toolServer registers the tools and resources of a site with an MCP server.
type toolServer struct {
	site     *Site
	server   *mcp.Server
	callerOf func(mcp.Request) (oauth.Caller, bool)
}

// actor returns the actor of the request if they may use the tool.
func (t *toolServer) actor(req mcp.Request, tool string) (actor, error) {
	caller, known := t.callerOf(req)
	if !known {
		return actor{}, refuse("the caller is unknown; sign in first")
	}
	acting := actorOf(caller)
	switch {
	case acting.role == "":
		return actor{}, refuse("you have no role on this site; ask an editor for a token")
	case !acting.role.mayUse(tool):
		return actor{}, refuse("the role %s may not use %s; it needs the role %s", acting.role, tool, needed[tool])
	}
	return acting, nil
}

// addTool binds a tool to a method of the site. An error becomes the tool's result, so that the
// model can read it.
func addTool[In, Out any](t *toolServer, tool *mcp.Tool, verb func(context.Context, actor, In) (Out, error)) {
	mcp.AddTool(t.server,
		tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			acting, err := t.actor(req, tool.Name)
			if err != nil {
				var none Out
				return nil, none, err
			}
			out, err := verb(ctx, acting, in)
			return nil, out, publicError(ctx, err)
		})
}

// publicError returns a refusal unchanged, and replaces any other error by a general refusal after
// logging it.
func publicError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[Refusal](err); ok {
		return refused
	}
	slog.ErrorContext(ctx, "the demo site failed", "error", err)
	return refuse("internal error; try again later")
}
