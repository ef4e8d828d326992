package inprocess

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// ToolNames returns the names of the tools, also those that a policy hides; none if a middleware of
// the host refuses to list them.
func (s *Server) ToolNames(ctx context.Context) (names []string) {
	defer func() { _ = recover() }() // a middleware of the host may need a request of HTTP
	_, transport := sdk.NewInMemoryTransports()
	session, err := s.mcp.Connect(ctx, transport, nil)
	if err != nil {
		return nil
	}
	defer func() { _ = session.Close() }()
	extra := &sdk.RequestExtra{TokenInfo: (&response.Identity{Resource: s.options.Resource}).TokenInfo()}
	for params := new(sdk.ListToolsParams); ; {
		result, err := s.unprotected(ctx, "tools/list",
			&sdk.ListToolsRequest{Session: session, Params: params, Extra: extra})
		page, isListed := result.(*sdk.ListToolsResult)
		if err != nil || !isListed {
			return names
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if page.NextCursor == "" {
			return names
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
}
