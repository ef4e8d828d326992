package stream

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Identity is the authenticated caller of a request. It keeps the token, which is in no header any
// more, to check it again.
type Identity struct {
	Sender
	Token      string // "" for a request that another replica has authorized
	Resource   oauth.Resource
	Host       oauth.HostToken // only in a gateway, and only with a Token
	HostDigest oauth.Digest    // of the host token, instead of Host, when Token is ""

	Forwarded bool // another replica answers the request, and has it in its audit
}

// Sender is the part of an Identity without tokens, for the SDK and tools.
type Sender struct {
	Caller    oauth.Caller
	RequestID string      // for the audit; "" without one
	Audited   atomic.Bool // the SDK got the request, and the audit has it
}

const senderKey = "pasteport/sender"

// TokenInfo returns the identity for the SDK, which binds a session to UserID. That is the owner,
// so that a session survives refreshes and step-ups.
func (i *Identity) TokenInfo() *auth.TokenInfo {
	return &auth.TokenInfo{
		UserID:     i.Caller.SessionOwner(i.Resource),
		Scopes:     i.Caller.Scopes.Values(),
		Expiration: i.Caller.ExpiresAt,
		Extra:      map[string]any{senderKey: &i.Sender},
	}
}

// SenderOf returns the sender from a TokenInfo, nil if it has none.
func SenderOf(info *auth.TokenInfo) *Sender {
	if info == nil {
		return nil
	}
	sender, _ := info.Extra[senderKey].(*Sender)
	return sender
}

type identityKey struct{}

// IdentityOf returns the identity of a context. It is never nil behind the guard.
func IdentityOf(ctx context.Context) *Identity {
	identity, _ := ctx.Value(identityKey{}).(*Identity)
	return identity
}

// responseContext is the context of a request whose response may end before the client hangs up.
type responseContext struct {
	context.Context
	client   context.Context // ends when the client hangs up
	end      context.CancelCauseFunc
	identity *Identity // nil before Writer.Identify
}

func newContext(client context.Context) *responseContext {
	ctx, end := context.WithCancelCause(client)
	return &responseContext{Context: ctx, client: client, end: end}
}

func (c *responseContext) Value(key any) any {
	if key == (identityKey{}) && c.identity != nil {
		return c.identity
	}
	return c.Context.Value(key)
}
