package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// private is the cache scope of every result, because results may depend on the roles of the
// caller.
const private = "private"

// policy controls access to tools, prompts and resources. What a Policy denies is unknown to the
// caller; for a tool whose scopes are missing, the client can request them.
type policy struct {
	catalogue  oauth.ScopeCatalogue
	tools      Policy
	prompts    Policy
	resources  Policy
	toolScopes func(tool string) oauth.Scopes
}

// permits reports whether the caller may see and use a name.
func (allowed Policy) permits(caller oauth.Caller, name string) bool {
	return allowed == nil || allowed(caller, name)
}

// missingScopes reports whether the caller lacks a scope for the tools, and returns all scopes that
// the client should request.
func (p policy) missingScopes(caller oauth.Caller, tools ...string) (oauth.Scopes, bool) {
	lacks := func(tool string) bool {
		return p.tools.permits(caller, tool) && !caller.Scopes.Contains(p.toolScopes(tool))
	}
	if p.toolScopes == nil || !slices.ContainsFunc(tools, lacks) { // usually enough, without the cost of Expand
		return oauth.Scopes{}, false
	}
	var needed oauth.Scopes
	for _, tool := range tools {
		if p.tools.permits(caller, tool) {
			needed = needed.With(p.toolScopes(tool).Values()...)
		}
	}
	if needed.Empty() || p.catalogue.Expand(caller.Scopes).Contains(needed) {
		return oauth.Scopes{}, false
	}
	return needed.With(p.catalogue.Defaults().Values()...).Without(oauth.OfflineAccess), true
}

// check checks a request, for all transports of the SDK.
func (p policy) check(caller oauth.Caller, method string, req sdk.Request) error {
	switch params := req.GetParams().(type) {
	case *sdk.CallToolParamsRaw:
		return p.checkTool(caller, params.Name)
	case *sdk.GetPromptParams:
		return p.checkPrompt(caller, params.Name)
	case *sdk.ReadResourceParams:
		return p.checkResources(caller, params.URI)
	case *sdk.SubscribeParams:
		return p.checkResources(caller, params.URI)
	case *sdk.UnsubscribeParams:
		return p.checkResources(caller, params.URI)
	case *sdk.SubscriptionsListenParams:
		if params.Notifications != nil {
			return p.checkResources(caller, params.Notifications.ResourceSubscriptions...)
		}
	case *sdk.CompleteParams:
		return p.checkReference(caller, params.Ref)
	default:
		return p.checkNames(caller, method, params)
	}
	return nil
}

// checkNames checks a method that the host has added, which names a tool, prompt or
// resource as those of MCP do.
func (p policy) checkNames(caller oauth.Caller, method string, params sdk.Params) error {
	kind, _, _ := strings.Cut(method, "/")
	if kind != "tools" && kind != "prompts" && kind != "resources" {
		return nil
	}
	var sent struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encoding the params of %s: %w", kind, err)
	}
	_ = json.Unmarshal(raw, &sent) // a method of the host may have other members of these names
	switch {
	case kind == "tools" && sent.Name != "":
		return p.checkTool(caller, sent.Name)
	case kind == "prompts" && sent.Name != "":
		return p.checkPrompt(caller, sent.Name)
	case kind == "resources" && sent.URI != "":
		return p.checkResources(caller, sent.URI)
	}
	return nil
}

func (p policy) checkReference(caller oauth.Caller, ref *sdk.CompleteReference) error {
	switch {
	case ref == nil:
		return nil
	case ref.URI != "":
		return p.checkResources(caller, ref.URI)
	}
	return p.checkPrompt(caller, ref.Name)
}

func (p policy) checkTool(caller oauth.Caller, tool string) error {
	if !p.tools.permits(caller, tool) {
		return &policyError{"U26", unknownTool(tool)}
	}
	if _, lacking := p.missingScopes(caller, tool); lacking {
		return &policyError{"G10", &rpc.Error{Code: jsonrpc.CodeRefused, Message: "insufficient scope"}}
	}
	return nil
}

func (p policy) checkPrompt(caller oauth.Caller, prompt string) error {
	if p.prompts.permits(caller, prompt) {
		return nil
	}
	return &policyError{"U26", unknownPrompt(prompt)}
}

func (p policy) checkResources(caller oauth.Caller, uris ...string) error {
	for _, uri := range uris {
		if !p.resources.permits(caller, uri) {
			return &policyError{"U26", unknownResource(uri, rpc.CodeInvalidParams)}
		}
	}
	return nil
}

// unknownTool is the error of the SDK for a tool that does not exist.
func unknownTool(name string) *rpc.Error {
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
}

// unknownPrompt is the error of the SDK for a prompt that does not exist.
func unknownPrompt(name string) *rpc.Error {
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)}
}

// unknownResource is the error for a resource that does not exist, with the code of the revision.
func unknownResource(uri string, code int64) *rpc.Error {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // strings always encode
	return &rpc.Error{Code: code, Message: "Resource not found", Data: data}
}

// receive is the middleware of the SDK's server for all methods. A request without a caller has a
// caller without roles and scopes.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	s.unprotected = next
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		caller, _ := CallerOf(req)
		if _, opens := req.GetParams().(*sdk.InitializeParams); opens {
			if err := s.admitSession(req, &caller); err != nil {
				return nil, err
			}
		}
		if err := s.policy.check(caller, method, req); err != nil {
			return nil, err
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

// forCaller removes the tools, prompts and resources that the caller may not use, and forbids
// shared caches to store results. It changes a copy, because the server may return the same result
// again.
func (p policy) forCaller(caller oauth.Caller, result sdk.Result) sdk.Result {
	switch r := result.(type) {
	case *sdk.ListToolsResult:
		return changed(r, func(own *sdk.ListToolsResult) {
			own.CacheScope, own.Tools = private, visible(p.tools, caller, r.Tools, func(t *sdk.Tool) string {
				return t.Name
			})
		})
	case *sdk.ListPromptsResult:
		return changed(r, func(own *sdk.ListPromptsResult) {
			own.CacheScope, own.Prompts = private, visible(p.prompts, caller, r.Prompts, func(t *sdk.Prompt) string {
				return t.Name
			})
		})
	case *sdk.ListResourcesResult:
		return changed(r, func(own *sdk.ListResourcesResult) {
			own.CacheScope, own.Resources = private,
				visible(p.resources, caller, r.Resources, func(t *sdk.Resource) string {
					return t.URI
				})
		})
	case *sdk.ListResourceTemplatesResult:
		return changed(r, func(own *sdk.ListResourceTemplatesResult) {
			own.CacheScope = private
			own.ResourceTemplates = visible(p.resources, caller,
				r.ResourceTemplates, func(t *sdk.ResourceTemplate) string {
					return t.URITemplate
				})
		})
	case *sdk.ReadResourceResult:
		return changed(r, func(own *sdk.ReadResourceResult) { own.CacheScope = private })
	case *sdk.DiscoverResult:
		return changed(r, func(own *sdk.DiscoverResult) { own.CacheScope = private })
	}
	return result
}

// visible returns the elements of a list that the caller may use.
func visible[E any](allowed Policy, caller oauth.Caller, all []E, nameOf func(E) string) []E {
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
func senderOf(request sdk.Request) *response.Sender {
	extra := request.GetExtra()
	if extra == nil {
		return nil
	}
	return response.SenderOf(extra.TokenInfo)
}

// fixedBearer is the header that the SDK's middleware gets in place of the token.
var fixedBearer = []string{"Bearer -"}

// withTokenInfo passes the caller to the SDK's handler, through the SDK's own middleware. That
// expects a token in the headers, from which the guard has removed it, and checks the expiry with a
// clock that may differ from Options.Now, so that check is off.
func withTokenInfo(handler http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return response.IdentityOf(ctx).TokenInfo(), nil
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
