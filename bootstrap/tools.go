package bootstrap

import (
	"context"
	"errors"
	"sync"

	"github.com/pasteport/pasteport/domain/oauth"
)

// toolLists are the registered MCP servers of an OAuthServer.
type toolLists struct{ servers sync.Map } // of guarded by oauth.Resource

// Tools implements oauth.ToolLister.
func (t *toolLists) Tools(ctx context.Context, resource oauth.Resource, caller oauth.Caller,
	host oauth.HostToken) ([]oauth.Tool, error) {
	found, registered := t.servers.Load(resource)
	if !registered {
		return nil, errors.New("this process has no MCP server for the resource")
	}
	server := found.(guarded)
	tools, err := server.Tools(ctx, caller, host)
	return server.Access().VisibleTools(caller, tools), err
}
