package mcp

import (
	"context"
	"math"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/domain/oauth"
)

const senderKey = "pasteport/sender"

// CallerOf tells a tool who is calling. It is the caller of this very message, also inside a session; ok is false when the
// request did not come through a Server.
func CallerOf(request sdk.Request) (caller oauth.Caller, ok bool) {
	from := senderOf(request)
	if from == nil {
		return oauth.Caller{}, false
	}
	return from.caller, true
}

// sender is what the SDK and tools may hold of an identity: no token.
type sender struct {
	caller oauth.Caller
	served atomic.Bool // the SDK has what it will answer
}

// senderOf is nil for a request that did not come through a Server.
func senderOf(request sdk.Request) *sender {
	extra := request.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	from, _ := extra.TokenInfo.Extra[senderKey].(*sender)
	return from
}

// identity is what the guard found out. The token stays here, out of every header, to be asked about again (G16).
type identity struct {
	sender
	token    string
	resource oauth.Resource
	host     oauth.HostToken // for the upstream of a gateway only (J13)
}

// tokenInfo carries the sender through the SDK, which binds a session to UserID: the owner outlives refreshes and step-ups (G14).
func (i *identity) tokenInfo() *auth.TokenInfo {
	return &auth.TokenInfo{
		UserID: i.caller.SessionOwner(i.resource), Scopes: i.caller.Scopes.Values(), Expiration: i.caller.ExpiresAt, Extra: map[string]any{senderKey: &i.sender},
	}
}

// digest is that of the token, by which a store names it.
func (i *identity) digest() oauth.Digest {
	secret, _ := oauth.ParseSecret(oauth.AccessTokenSecret, i.token)
	return secret.Digest()
}

type identityKey struct{}

// identityOf is never nil behind the guard.
func identityOf(ctx context.Context) *identity {
	who, _ := ctx.Value(identityKey{}).(*identity)
	return who
}

// standIn is what the SDK's middleware sees instead of the token.
var standIn = []string{"Bearer -"}

// withTokenInfo tells the SDK's handler who is calling, through the SDK's own middleware. That middleware would read the token from the
// headers, where it no longer is (G14), and compare its expiry with another clock than ours.
func withTokenInfo(handler http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return identityOf(ctx).tokenInfo(), nil
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
