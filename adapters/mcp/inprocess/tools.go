package inprocess

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/recovered"
)

// Tools implements guard.Backend. It fails if a middleware of the host refuses to list them, and
// returns those before.
func (s *Server) Tools(ctx context.Context, caller oauth.Caller, _ oauth.HostToken) (tools []oauth.Tool, err error) {
	defer func() {
		if value := recover(); value != nil { // a middleware of the host may need a request of HTTP
			err = fmt.Errorf("listing the tools: %w", recovered.New(value))
		}
	}()
	_, transport := sdk.NewInMemoryTransports()
	session, err := s.mcp.Connect(ctx, transport, nil)
	if err != nil {
		return nil, fmt.Errorf("listing the tools: %w", err)
	}
	defer func() { _ = session.Close() }()
	identity := &response.Identity{Sender: response.Sender{Caller: caller}, Resource: s.options.Resource}
	extra := &sdk.RequestExtra{TokenInfo: identity.TokenInfo()}
	for params := new(sdk.ListToolsParams); ; {
		result, err := s.unprotected(ctx, "tools/list",
			&sdk.ListToolsRequest{Session: session, Params: params, Extra: extra})
		page, listed := result.(*sdk.ListToolsResult)
		if err != nil || !listed {
			return tools, errors.Join(errors.New("the MCP server does not list its tools"), err)
		}
		for _, tool := range page.Tools {
			described, err := guard.NewTool(tool)
			if err != nil {
				return tools, err
			}
			tools = append(tools, described)
		}
		if page.NextCursor == "" {
			return tools, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
}

// ToolNames returns the names of the tools, also those that a policy hides; none if a middleware of
// the host refuses to list them.
func (s *Server) ToolNames(ctx context.Context) (names []string) {
	tools, _ := s.Tools(ctx, oauth.Caller{}, oauth.HostToken{})
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// RefuseUnlisted implements guard.Backend.
func (s *Server) RefuseUnlisted(out *response.Writer, r *http.Request, _ message.Body, err error) {
	s.refuseUnlisted(out, r, err)
}

func (s *Server) refuseUnlisted(w http.ResponseWriter, r *http.Request, err error) {
	s.options.Logger.ErrorContext(r.Context(), "cannot list the tools", "error", err)
	response.Unavailable(w, "The tools cannot be compared with those of the consent just now")
}
