package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools returns the names of the tools of a server of the SDK, also those that its Policy hides;
// none of a gateway, and none if a middleware of the host refuses to list them.
func (s *Server) Tools(ctx context.Context) (names []string) {
	if s.mcp == nil {
		return nil
	}
	defer func() { _ = recover() }() // a middleware of the host may need a request of HTTP
	_, transport := sdk.NewInMemoryTransports()
	session, err := s.mcp.Connect(ctx, transport, nil)
	if err != nil {
		return nil
	}
	defer func() { _ = session.Close() }()
	for params := new(sdk.ListToolsParams); ; {
		result, err := s.unprotected(ctx, "tools/list", &sdk.ListToolsRequest{Session: session, Params: params})
		page, listed := result.(*sdk.ListToolsResult)
		if err != nil || !listed {
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
