package mcp

import (
	"context"
	"fmt"
	"slices"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
)

// private is the cache scope of every result: what a caller sees may depend on their roles.
const private = "private"

// policy decides about tools. A caller without the role never learns that the tool exists, because no new consent could help;
// a caller without the scope is asked for it (G10).
type policy struct {
	catalogue oauth.ScopeCatalogue
	allows    ToolPolicy
	needs     func(tool string) oauth.Scopes
}

func (p policy) permits(caller oauth.Caller, tool string) bool {
	return p.allows == nil || p.allows(caller, tool)
}

// lacks returns every scope to ask for when the caller does not hold all that calling the tools takes (G10).
func (p policy) lacks(caller oauth.Caller, tools ...string) (oauth.Scopes, bool) {
	if p.needs == nil || !slices.ContainsFunc(tools, func(tool string) bool { return p.permits(caller, tool) && !caller.Scopes.Contains(p.needs(tool)) }) {
		return oauth.Scopes{}, false // without what the scopes imply
	}
	var needed oauth.Scopes
	for _, tool := range tools {
		if p.permits(caller, tool) {
			needed = needed.With(p.needs(tool).Values()...)
		}
	}
	if needed.Empty() || p.catalogue.Expand(caller.Scopes).Contains(needed) {
		return oauth.Scopes{}, false
	}
	return needed.With(p.catalogue.Defaults().Values()...).Without(oauth.OfflineAccess), true
}

// check is the authority, whatever the transport let through.
func (p policy) check(caller oauth.Caller, tool string) error {
	if !p.permits(caller, tool) {
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", tool)}
	}
	if _, lacking := p.lacks(caller, tool); lacking {
		return &rpc.Error{Code: jsonrpc.CodeRefused, Message: "insufficient scope"}
	}
	return nil
}

// receive is the middleware around every method of the SDK's server. A request without a caller is one of nobody.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		caller, _ := CallerOf(req)
		switch params := req.GetParams().(type) {
		case *sdk.InitializeParams:
			if err := s.admitSession(req, &caller); err != nil {
				return nil, err
			}
		case *sdk.CallToolParamsRaw:
			if err := s.policy.check(caller, params.Name); err != nil {
				return nil, err
			}
		}
		session := sessionIDOf(req)
		s.open.BeginCall(session)
		defer s.open.EndCall(session)
		result, err := next(ctx, method, req)
		if from := senderOf(req); from != nil {
			from.Served()
		}
		if err != nil {
			return result, err
		}
		return s.policy.forCaller(caller, result), nil
	}
}

// forCaller removes the tools that are not for this caller and keeps shared caches from keeping any answer. It changes a copy: the server may
// hand out the same result again.
func (p policy) forCaller(caller oauth.Caller, result sdk.Result) sdk.Result {
	switch r := result.(type) {
	case *sdk.ListToolsResult:
		return changed(r, func(own *sdk.ListToolsResult) {
			own.CacheScope = private
			own.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t *sdk.Tool) bool { return !p.permits(caller, t.Name) })
		})
	case *sdk.ListPromptsResult:
		return changed(r, func(own *sdk.ListPromptsResult) { own.CacheScope = private })
	case *sdk.ListResourcesResult:
		return changed(r, func(own *sdk.ListResourcesResult) { own.CacheScope = private })
	case *sdk.ListResourceTemplatesResult:
		return changed(r, func(own *sdk.ListResourceTemplatesResult) { own.CacheScope = private })
	case *sdk.ReadResourceResult:
		return changed(r, func(own *sdk.ReadResourceResult) { own.CacheScope = private })
	case *sdk.DiscoverResult:
		return changed(r, func(own *sdk.DiscoverResult) { own.CacheScope = private })
	}
	return result
}

// changed returns a changed copy.
func changed[R any](result *R, change func(own *R)) *R {
	if result == nil {
		return nil
	}
	own := *result
	change(&own)
	return &own
}
