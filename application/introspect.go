package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Introspect tells an MCP server elsewhere who calls it with an access token (RFC 7662). The scopes
// include implied ones. active is false for every text that is not a valid access token for that
// server. It refuses a wrong secret with InvalidClient or TooManyFailures.
func (s Tokens) Introspect(ctx context.Context, by client.Credentials, token string) (caller oauth.Caller, active bool,
	err error) {
	resource, err := s.Settings.CheckResourceServer(by.Client, by.Secret)
	if err != nil {
		if wait := s.countUnknown(ctx); wait > 0 {
			err = oauth.RefuseFor(wait, oauth.TooManyFailures, "K3",
				"Too many wrong secrets came from this network", err)
		}
		return oauth.Caller{}, false, err
	}
	if !oauth.IsOwnToken(token) { // so that another server cannot try out tokens of the site
		return oauth.Caller{}, false, nil
	}
	caller, err = s.Authenticate(ctx, token, resource)
	if kind, _ := oauth.KindOf(err); kind == oauth.InvalidToken {
		s.ports.Logger.InfoContext(ctx, "introspected an inactive token", "resource", resource.String(), "reason", err)
		return oauth.Caller{}, false, nil
	}
	if err == nil {
		attempt.From(ctx).Record(attempt.Call)
		caller.Scopes = s.Settings.ScopesOf(resource).Expand(caller.Scopes)
	}
	return caller, err == nil, err
}
