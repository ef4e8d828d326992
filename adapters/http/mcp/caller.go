package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/domain/oauth"
)

const callerKey = "pasteport/caller"

// CallerOf tells a tool who is calling. It is the caller of this very message, also inside a session; ok is false when the
// request did not come through a Server.
func CallerOf(request sdk.Request) (caller oauth.Caller, ok bool) {
	extra := request.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return oauth.Caller{}, false
	}
	caller, ok = extra.TokenInfo.Extra[callerKey].(oauth.Caller)
	return caller, ok
}

// tokenInfo carries the caller through the SDK, which binds a session to UserID; the grant outlives refreshes (G14).
func tokenInfo(caller oauth.Caller) *auth.TokenInfo {
	return &auth.TokenInfo{UserID: caller.Grant, Scopes: caller.Scopes.Values(), Extra: map[string]any{callerKey: caller}}
}

// identity is what the guard found out. The token stays here, out of every header, to be asked about again (G16).
type identity struct {
	token  string
	caller oauth.Caller
	host   oauth.HostToken // for the upstream of a gateway only (J13)
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
