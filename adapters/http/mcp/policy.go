package mcp

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// private is the cache scope of every result, because results may depend on the roles of the caller.
const private = "private"

// policy controls access to tools. A tool that the ToolPolicy denies is an unknown tool to the caller; for a tool whose scopes are missing, the
// client can request them (G10).
type policy struct {
	catalogue  oauth.ScopeCatalogue
	toolPolicy ToolPolicy
	toolScopes func(tool string) oauth.Scopes
}

func (p policy) permits(caller oauth.Caller, tool string) bool {
	return p.toolPolicy == nil || p.toolPolicy(caller, tool)
}

// missingScopes reports whether the caller lacks a scope for the tools, and returns all scopes that the client should request (G10).
func (p policy) missingScopes(caller oauth.Caller, tools ...string) (oauth.Scopes, bool) {
	lacks := func(tool string) bool { return p.permits(caller, tool) && !caller.Scopes.Contains(p.toolScopes(tool)) }
	if p.toolScopes == nil || !slices.ContainsFunc(tools, lacks) { // usually enough, without the cost of Expand
		return oauth.Scopes{}, false
	}
	var needed oauth.Scopes
	for _, tool := range tools {
		if p.permits(caller, tool) {
			needed = needed.With(p.toolScopes(tool).Values()...)
		}
	}
	if needed.Empty() || p.catalogue.Expand(caller.Scopes).Contains(needed) {
		return oauth.Scopes{}, false
	}
	return needed.With(p.catalogue.Defaults().Values()...).Without(oauth.OfflineAccess), true
}

// check checks every call of a tool, for all transports.
func (p policy) check(caller oauth.Caller, tool string) error {
	if !p.permits(caller, tool) {
		return &policyError{&rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", tool)}}
	}
	if _, lacking := p.missingScopes(caller, tool); lacking {
		return &policyError{&rpc.Error{Code: jsonrpc.CodeRefused, Message: "insufficient scope"}}
	}
	return nil
}

// receive is the middleware of the SDK's server for all methods. A request without a caller has a caller without roles and scopes.
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
		s.responses.BeginCall(session)
		defer s.responses.EndCall(session)
		result, err := next(ctx, method, req)
		if sender := senderOf(req); sender != nil {
			sender.Served()
		}
		if err != nil {
			return result, err
		}
		return s.policy.forCaller(caller, result), nil
	}
}

// forCaller removes the tools that the caller may not call, and forbids shared caches to store results. It changes a copy, because the server may
// return the same result again.
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

// CallerOf returns the caller of a request to a tool; false for a request that did not pass a Server. In a session each request has its own caller.
func CallerOf(request sdk.Request) (caller oauth.Caller, ok bool) {
	sender := senderOf(request)
	if sender == nil {
		return oauth.Caller{}, false
	}
	return sender.Caller, true
}

// senderOf returns nil for a request that did not pass a Server.
func senderOf(request sdk.Request) *response.Sender {
	extra := request.GetExtra()
	if extra == nil {
		return nil
	}
	return response.SenderOf(extra.TokenInfo)
}

// fixedBearer is the header that the SDK's middleware gets in place of the token.
var fixedBearer = []string{"Bearer -"}

// withTokenInfo passes the caller to the SDK's handler, through the SDK's own middleware. That expects a token in the headers, from which the guard
// has removed it (G14), and checks the expiry with a clock that may differ from Options.Now, so that check is off.
func withTokenInfo(handler http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return response.IdentityOf(ctx).TokenInfo(), nil
	}
	identify := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: math.MaxInt64})
	identified := identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		delete(r.Header, "Authorization")
		handler.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header["Authorization"] = fixedBearer
		identified.ServeHTTP(w, r)
	})
}
