package bootstrap

import (
	"context"
	"iter"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// EndGrantsOf ends all grants of one of the site's tokens, closes their open streams, and withdraws
// the codes of the token that are not redeemed. Call it when the site revokes the token. It returns
// how many grants and codes were active.
func (a *OAuthServer) EndGrantsOf(ctx context.Context, token string) (int, error) {
	return a.server.Operator.EndGrantsOf(ctx, map[string]string{credential.Token: token}, oauth.EndedByHost)
}

// EndGrantsOfFields is EndGrantsOf for a Config with HostFields whose verifier is an
// oauth.FieldsVerifier: it needs the value of every required field. For any other verifier,
// EndGrantsOf ends the grants of a token whatever the other fields are.
func (a *OAuthServer) EndGrantsOfFields(ctx context.Context, values map[string]string) (int, error) {
	return a.server.Operator.EndGrantsOf(ctx, values, oauth.EndedByHost)
}

// EndGrantsOfTokenID is EndGrantsOf for a site that stores only hashes of its tokens: id is what
// its verifier returns as Principal.TokenID. It reads all grants, and fails as Grants does.
func (a *OAuthServer) EndGrantsOfTokenID(ctx context.Context, id string) (int, error) {
	return a.server.Operator.EndGrantsOfTokenID(ctx, id)
}

// EndLeaked is EndGrantsOf for an operator who has the token. It returns an error if grants are
// found by several fields together.
func (a *OAuthServer) EndLeaked(ctx context.Context, token string) (int, error) {
	return a.server.Operator.EndLeaked(ctx, token)
}

// ReplaceHostToken moves the connections of one of the site's tokens to another token of the same
// person, and returns their number. Call it while the old token still works; no app notices. It
// changes nothing and returns an error when the verifier refuses the new token or names another
// person. If the verifier does not name a subject, it must still accept the old token.
func (a *OAuthServer) ReplaceHostToken(ctx context.Context, token, replacement string) (int, error) {
	return a.server.Operator.ReplaceHostToken(ctx, map[string]string{credential.Token: token},
		map[string]string{credential.Token: replacement})
}

// ReplaceHostFields is ReplaceHostToken for a Config with HostFields.
func (a *OAuthServer) ReplaceHostFields(ctx context.Context, values, replacement map[string]string) (int, error) {
	return a.server.Operator.ReplaceHostToken(ctx, values, replacement)
}

// Grants iterates over all active grants and unredeemed codes, oldest first. It ends with an error
// if the store is not an oauth.AuthorizationLister.
func (a *OAuthServer) Grants(ctx context.Context) iter.Seq2[oauth.Connection, error] {
	return a.server.Operator.Grants(ctx)
}

// EndGrant ends the active grant with the id, or withdraws the unredeemed code, and returns their
// number.
func (a *OAuthServer) EndGrant(ctx context.Context, id string) (int, error) {
	return a.server.Operator.EndGrant(ctx, id)
}

// EndGrants ends the active grants and withdraws the unredeemed codes for which chosen returns
// true, and returns their number. It fails as Grants does.
func (a *OAuthServer) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error) {
	return a.server.Operator.EndGrants(ctx, chosen, oauth.EndedByOperator)
}
