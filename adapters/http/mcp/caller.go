package mcp

import (
	"context"
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
	host     oauth.HostToken                // for the upstream of a gateway only (J13)
	info     atomic.Pointer[auth.TokenInfo] // once the SDK has asked for it
}

// tokenInfo carries the sender through the SDK, which binds a session to UserID: the owner outlives refreshes and step-ups (G14).
func (i *identity) tokenInfo() *auth.TokenInfo {
	if made := i.info.Load(); made != nil {
		return made
	}
	made := &auth.TokenInfo{
		UserID: i.caller.SessionOwner(i.resource), Scopes: i.caller.Scopes.Values(), Expiration: i.caller.ExpiresAt, Extra: map[string]any{senderKey: &i.sender},
	}
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
