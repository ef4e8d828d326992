package response

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Identity is what the guard found out. The token stays here, out of every header, to be asked about again (G16).
type Identity struct {
	Sender
	Token    string
	Resource oauth.Resource
	Host     oauth.HostToken // for the upstream of a gateway only (J13)
}

// Sender is what the SDK and tools may hold of an identity: no token.
type Sender struct {
	Caller oauth.Caller
	served atomic.Bool // the SDK has what it will answer
}

// Served notes that the SDK has what it will answer, so that what comes next may be sent with the end of the response.
func (s *Sender) Served() { s.served.Store(true) }

const senderKey = "pasteport/sender"

// TokenInfo carries the sender through the SDK, which binds a session to UserID: the owner outlives refreshes and step-ups (G14).
func (i *Identity) TokenInfo() *auth.TokenInfo {
	return &auth.TokenInfo{
		UserID: i.Caller.SessionOwner(i.Resource), Scopes: i.Caller.Scopes.Values(), Expiration: i.Caller.ExpiresAt, Extra: map[string]any{senderKey: &i.Sender},
	}
}

// SenderOf returns the sender that TokenInfo has put into info, or nil.
func SenderOf(info *auth.TokenInfo) *Sender {
	if info == nil {
		return nil
	}
	from, _ := info.Extra[senderKey].(*Sender)
	return from
}

// digest is that of the token, by which a store names it.
func (i *Identity) digest() oauth.Digest {
	secret, _ := oauth.ParseSecret(oauth.AccessTokenSecret, i.Token)
	return secret.Digest()
}

type identityKey struct{}

// WithIdentity returns a context from which IdentityOf gets the identity.
func WithIdentity(ctx context.Context, who *Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// IdentityOf is never nil behind the guard.
func IdentityOf(ctx context.Context) *Identity {
	who, _ := ctx.Value(identityKey{}).(*Identity)
	return who
}
