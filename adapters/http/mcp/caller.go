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

// CallerOf tells a tool who is calling. It is the caller of this very message, also inside a session; ok is false when the
// request did not come through a Server.
func CallerOf(request sdk.Request) (caller oauth.Caller, ok bool) {
	from := senderOf(request)
	if from == nil {
		return oauth.Caller{}, false
	}
	return from.Caller, true
}

// senderOf is nil for a request that did not come through a Server.
func senderOf(request sdk.Request) *response.Sender {
	extra := request.GetExtra()
	if extra == nil {
		return nil
	}
	return response.SenderOf(extra.TokenInfo)
}

// standIn is what the SDK's middleware sees instead of the token.
var standIn = []string{"Bearer -"}

// withTokenInfo tells the SDK's handler who is calling, through the SDK's own middleware. That middleware would read the token from the
// headers, where it no longer is (G14), and compare its expiry with another clock than ours.
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
		r.Header["Authorization"] = standIn
		identified.ServeHTTP(w, r)
	})
}
