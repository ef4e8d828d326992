package sdkserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
)

// private is the cache scope of results, because they may depend on the roles of the caller.
const private = "private"

// receive is the middleware of the SDK's server for all methods. A request without a caller has a
// caller without roles and scopes.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	s.unprotected = next // for ToolNames, which lists tools for no caller
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		caller, _ := CallerOf(req)
		session, _ := req.GetSession().(*sdk.ServerSession)
		if _, opens := req.GetParams().(*sdk.InitializeParams); opens {
			extra := req.GetExtra()
			isHTTP := session != nil && extra != nil && extra.Header != nil
			// The SDK has no limit for its sessions.
			if isHTTP && !s.responses.AddSession(sdkSession{session, new(message.Sequence)}, &caller) {
				return nil, &rpc.Error{Code: message.CodeRefused, Message: "the session cannot be opened"}
			}
		}
		var names message.Names
		var arguments []byte
		if call, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok { // its arguments may be long
			names.Tools, arguments = []string{call.Name}, call.Arguments
		} else {
			text, err := json.Marshal(req.GetParams())
			if err != nil {
				return nil, fmt.Errorf("encoding the params of a method: %w", err)
			}
			if names, err = message.NamesIn(method, text); err != nil { // also of methods that the host has added
				return nil, err
			}
		}
		if unknown := s.FindUnknown(caller, names, rpc.CodeInvalidParams); unknown != nil {
			return nil, &policyError{"U26", unknown}
		}
		if _, lacking := s.MissingScopes(caller, names.Tools, arguments); lacking {
			return nil, &policyError{"G10", &rpc.Error{Code: message.CodeRefused, Message: "insufficient scope"}}
		}
		id := ""
		if session != nil {
			id = session.ID()
		}
		s.responses.BeginCall(id)
		defer s.responses.EndCall(id)
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		return s.forCaller(caller, result), nil
	}
}

// forCaller removes the tools, prompts and resources that the caller may not use, and forbids
// shared caches to store results. It changes a copy, because the server may return the same result
// again.
func (s *Server) forCaller(caller oauth.Caller, result sdk.Result) sdk.Result {
	switch r := result.(type) {
	case *sdk.ListToolsResult:
		return changed(r, func(own *sdk.ListToolsResult) {
			own.CacheScope = private
			own.Tools = visible(s.options.Tools, caller, r.Tools, func(t *sdk.Tool) string { return t.Name })
		})
	case *sdk.ListPromptsResult:
		return changed(r, func(own *sdk.ListPromptsResult) {
			own.CacheScope = private
			own.Prompts = visible(s.options.Prompts, caller, r.Prompts, func(p *sdk.Prompt) string { return p.Name })
		})
	case *sdk.ListResourcesResult:
		return changed(r, func(own *sdk.ListResourcesResult) {
			own.CacheScope = private
			own.Resources = visible(s.options.Resources, caller, r.Resources,
				func(r *sdk.Resource) string { return r.URI })
		})
	case *sdk.ListResourceTemplatesResult:
		return changed(r, func(own *sdk.ListResourceTemplatesResult) {
			own.CacheScope = private
			own.ResourceTemplates = visible(s.options.Resources, caller, r.ResourceTemplates,
				func(t *sdk.ResourceTemplate) string { return t.URITemplate })
		})
	case *sdk.ReadResourceResult:
		return changed(r, func(own *sdk.ReadResourceResult) { own.CacheScope = private })
	case *sdk.DiscoverResult:
		return changed(r, func(own *sdk.DiscoverResult) { own.CacheScope = private })
	}
	return result
}

// visible returns the elements of a list that the caller may use.
func visible[E any](allowed guard.Policy, caller oauth.Caller, all []E, nameOf func(E) string) []E {
	if allowed == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(one E) bool { return !allowed(caller, nameOf(one)) })
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

// CallerOf returns the caller of a request to a tool; false for a request that did not pass a
// Server. In a session each request has its own caller.
func CallerOf(request sdk.Request) (caller oauth.Caller, ok bool) {
	sender := senderOf(request)
	if sender == nil {
		return oauth.Caller{}, false
	}
	return sender.Caller, true
}

// senderOf returns nil for a request that did not pass a Server.
func senderOf(request sdk.Request) *stream.Sender {
	extra := request.GetExtra()
	if extra == nil {
		return nil
	}
	return stream.SenderOf(extra.TokenInfo)
}

// fixedBearer is the header that the SDK's middleware gets instead of the token.
var fixedBearer = []string{"Bearer -"}

// withTokenInfo passes the caller to the SDK's handler, through the SDK's own middleware. That
// expects a token in the headers, from which the guard has removed it, and checks the expiry with a
// clock that may differ from Options.Now, so that check is off.
func withTokenInfo(handler http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return stream.IdentityOf(ctx).TokenInfo(), nil
	}
	identify := auth.RequireBearerToken(verify,
		&auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: math.MaxInt64})
	identified := identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		delete(r.Header, "Authorization")
		handler.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header["Authorization"] = fixedBearer
		identified.ServeHTTP(w, r)
	})
}
