package mcp

import (
	"context"
	"sync/atomic"

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
	known, ok := extra.TokenInfo.Extra[callerKey].(*oauth.Caller)
	if !ok {
		return oauth.Caller{}, false
	}
	return *known, true
}

// tokenInfo carries the caller through the SDK, which binds a session to UserID; the grant outlives refreshes (G14).
func tokenInfo(caller *oauth.Caller) *auth.TokenInfo {
	return &auth.TokenInfo{
		UserID: caller.Grant, Scopes: caller.Scopes.Values(), Expiration: caller.ExpiresAt, Extra: map[string]any{callerKey: caller},
	}
}

// identity is what the guard found out. The token stays here, out of every header, to be asked about again (G16).
type identity struct {
	token  string
	caller oauth.Caller
	host   oauth.HostToken                // for the upstream of a gateway only (J13)
	info   atomic.Pointer[auth.TokenInfo] // once the SDK has asked for it
}

func (i *identity) tokenInfo() *auth.TokenInfo {
	if made := i.info.Load(); made != nil {
		return made
	}
	made := tokenInfo(&i.caller)
	i.info.Store(made)
	return made
}

// digest is that of the token, by which a store names it.
func (i *identity) digest() oauth.Digest {
	secret, _ := oauth.ParseSecret(oauth.AccessTokenSecret, i.token)
	return secret.Digest()
}

type identityKey struct{}

// identified is the context of a request whose sender is known.
type identified struct {
	context.Context
	who *identity
}

// Value implements context.Context.
func (c identified) Value(key any) any {
	if value, known := c.who.value(key); known {
		return value
	}
	return c.Context.Value(key)
}

// value answers a context for whoever asks who is calling, and the SDK under the SDK's own key, which is set by the SDK's middleware
// otherwise: that would read the header again, and judge the expiry by another clock than ours.
func (i *identity) value(key any) (value any, known bool) {
	switch {
	case i == nil:
		return nil, false
	case key == identityKey{}:
		return i, true
	case key == sdkKey:
		return i.tokenInfo(), true
	}
	return nil, false
}

// sdkKey is what the SDK asks a context for.
var sdkKey = func() (asked any) {
	auth.TokenInfoFromContext(listener{context.Background(), &asked})
	return asked
}()

// listener is a context that hears what it is asked for.
type listener struct {
	context.Context
	asked *any
}

// Value implements context.Context.
func (l listener) Value(key any) any {
	*l.asked = key
	return nil
}

// identityOf is never nil behind the guard.
func identityOf(ctx context.Context) *identity {
	who, _ := ctx.Value(identityKey{}).(*identity)
	return who
}
