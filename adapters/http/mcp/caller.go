package mcp

import (
	"context"
	"math"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

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

// placeholder replaces the token for the SDK's middleware.
var placeholder = []string{"Bearer -"}

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
		r.Header["Authorization"] = placeholder
		identified.ServeHTTP(w, r)
	})
}
