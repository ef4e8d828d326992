package oauth

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Tokens is a successful token response (RFC 6749 §5.1).
type Tokens struct {
	Access   Secret
	Refresh  Secret // empty unless the grant has OfflineAccess
	Scopes   Scopes
	Lifetime time.Duration // of the access token
}

// FreshEntropy is what new tokens are made of. It is drawn before a change of the store, because
// the closure of the change may run more than once.
type FreshEntropy struct{ Access, Refresh Entropy }

// RefreshRequest is a client's request with grant type refresh_token (RFC 6749 §6).
type RefreshRequest struct {
	Client    string
	Token     Secret
	Resources []string
	Scope     string
	Principal Principal          // from the verification of the host token
	Host      *UnsealedHostToken // the verified host token; may be nil
	Fresh     FreshEntropy
}

// MayRefresh checks everything that Refresh checks, so that no host token is verified in vain.
// The cause is ErrReused if a replaced token of a public client gets no successor any more; the
// caller then ends the grant.
func (g *AccessGrant) MayRefresh(by RefreshRequest, settings *Settings, now time.Time) error {
	switch {
	case !g.issuedRefresh(by.Token), !settings.protects(g.resource):
		return refuseGrant("D22", errors.New("it is not a refresh token of this grant"))
	case g.client.ID.raw != by.Client:
		return refuseGrant("D22", errors.New("it belongs to another client"))
	case g.state == grantEnded:
		return refuseGrant("D23", errors.New("the grant has ended: "+string(g.endReason)))
	case expired(g.idleExpiresAt, now): // never later than expiresAt
		return refuseGrant("D23", errors.New("the grant has expired"))
	}
	if err := g.checkReuse(by.Token, settings, now); err != nil {
		return err
	}
	if err := g.resource.accepts(by.Resources); err != nil {
		return err
	}
	_, err := g.requested(by.Scope, settings)
	return err
}

// issuedRefresh reports whether the token is the newest refresh token or an earlier one. The tag of
// a token proves that this server issued it, so a smaller number is that of a replaced token. A
// larger one was issued before the database was restored from a backup.
func (g *AccessGrant) issuedRefresh(token Secret) bool {
	return token.kind() == RefreshTokenSecret && token.grant == g.id &&
		(token.number < g.generation || g.isNewest(token))
}

func (g *AccessGrant) isNewest(token Secret) bool {
	return token.number == g.generation && token.Digest() == g.refresh
}

// checkReuse refuses a replaced token that gets no successor any more. A client that authenticates
// proves in this way that it is not a thief, so the cause is ErrReused only for a public client.
func (g *AccessGrant) checkReuse(token Secret, settings *Settings, now time.Time) error {
	if g.isNewest(token) {
		return nil
	}
	i := g.findRotation(token)
	if i >= 0 && (g.rotations[i].inGrace(settings, now) || g.rotations[i].unused(g)) {
		return nil // in the window, or because the client shows no sign of having received the answer
	}
	late := fmt.Sprintf("%d refreshes later", g.generation-token.number)
	if i >= 0 {
		late = now.Sub(g.rotations[i].ReplacedAt).Truncate(time.Minute).String() + " after it was replaced"
	}
	cause := fmt.Errorf("an old copy of the refresh token, %s; refresh-grace is %s", late, settings.RefreshGrace)
	if g.client.AuthMethod != PrivateKeyJWT && !g.client.AuthMethod.HasSecret() {
		cause = fmt.Errorf("%w: %w", cause, ErrReused)
	}
	return refuseGrant("D27", cause)
}

// requested returns the scopes of the new access token, empty for all of the grant. A request for
// OfflineAccess alone, which permits nothing, gets all. A known scope that the grant lacks is left
// out, because clients repeat what they once requested; an unknown one is refused.
func (g *AccessGrant) requested(scope string, settings *Settings) (Scopes, error) {
	requested, err := ParseScopes(scope)
	if err != nil || requested.Without(OfflineAccess).Empty() {
		return Scopes{}, err
	}
	kept := requested.Intersect(g.scopes)
	known := settings.KnownScopes().With(g.scopes.Values()...)
	if !known.Contains(requested) || kept.Without(OfflineAccess).Empty() {
		return Scopes{}, Refuse(InvalidScope, "D24", "a requested scope was not granted")
	}
	return g.narrower(kept), nil
}

// UnsealWithRefreshToken opens the sealed host token, also with a replaced refresh token that still
// gets its successor. It returns ErrHostTokenLost if no key fits. The caller must call Forget.
func (g *AccessGrant) UnsealWithRefreshToken(presented Secret, settings *Settings) (*UnsealedHostToken, error) {
	holder := presented
	if !g.isNewest(presented) {
		found, _, err := g.newestFor(presented, settings.Keys)
		if err != nil {
			return nil, err
		}
		holder = found.refresh
	}
	return g.host.open(holder, g.id, settings.Keys)
}

// Refresh issues an access token and the next refresh token. A request with a replaced token gets
// the newest tokens instead. now is when the request arrived, before the host token was verified.
func (g *AccessGrant) Refresh(by RefreshRequest, settings *Settings, now time.Time) (*Tokens, error) {
	if err := g.MayRefresh(by, settings, now); err != nil {
		return nil, err
	}
	keys, err := settings.Keys.Snapshot()
	if err != nil {
		return nil, err
	}
	settings = settings.withKeys(keys)
	g.RecordVerification(by.Principal, settings, now)
	requested, err := g.requested(by.Scope, settings) // RecordVerification may have removed one
	if err != nil {
		return nil, err
	}
	if g.isNewest(by.Token) {
		return g.rotate(by, requested, settings, now)
	}
	return g.repeat(by, requested, settings, now)
}

// rotate issues an access token and replaces the presented refresh token.
func (g *AccessGrant) rotate(by RefreshRequest, requested Scopes, settings *Settings, now time.Time) (*Tokens, error) {
	tokens, err := g.issueAccess(by.Fresh.Access, by.Token, requested, settings, now)
	if err != nil {
		return nil, err
	}
	successor, err := NewSecret(RefreshTokenSecret, g.id, g.generation+1, by.Fresh.Refresh, settings.Keys)
	if err != nil {
		return nil, err
	}
	if h := by.Host; h != nil && h.wrap != nil && bytes.Equal(h.wrap, g.host.wrap) { // h has the unwrapped key
		g.host, err = g.host.rewrapDataKey(h.dataKey, successor, g.id, settings.Keys)
	} else {
		g.host, err = g.host.rewrapFor(by.Token, successor, g.id, settings.Keys)
	}
	if err != nil {
		return nil, err
	}
	if err := g.addRotation(by.Token, issued{refresh: successor, access: tokens.Access}, settings, now); err != nil {
		return nil, err
	}
	g.issueRefresh(successor, settings, now)
	tokens.Refresh = successor
	return tokens, nil
}

// repeat returns the newest tokens. If their access token is of no use to this request, another
// one takes its place, but not at the cost of an older one: a thief could otherwise end the
// access tokens of the owner.
func (g *AccessGrant) repeat(by RefreshRequest, requested Scopes, settings *Settings, now time.Time) (*Tokens, error) {
	found, before, err := g.newestFor(by.Token, settings.Keys)
	if err != nil {
		return nil, err
	}
	// A client that comes for an answer that it has never got begins the window again, because
	// other processes of the client may be about to come too. In the first half nothing changes.
	last := &g.rotations[len(g.rotations)-1]
	if last.unused(g) && now.Sub(last.ReplacedAt) >= settings.RefreshGrace/2 {
		last.ReplacedAt = now
	}
	token := g.findAccess(found.access)
	isValid := token != nil && !token.isRevoked() && !expired(token.ExpiresAt, now.Add(time.Second))
	serves := isValid && token.Scopes == requested.String() && (token.Wrap != nil || !settings.accessTokensUnseal())
	if serves || isValid && g.hasMostAccess(now) {
		tokens := g.respond(found.access, token, now)
		tokens.Refresh = found.refresh
		return tokens, nil
	}
	tokens, err := g.issueAccess(by.Fresh.Access, found.refresh, requested, settings, now)
	if err != nil {
		return nil, err
	}
	tokens.Refresh = found.refresh
	last.Box, err = issued{refresh: found.refresh, access: tokens.Access}.sealFor(before, g.id, settings.Keys)
	return tokens, err
}

// hasMostAccess reports whether one more access token would end the oldest.
func (g *AccessGrant) hasMostAccess(now time.Time) bool {
	valid := 0
	for _, token := range g.access {
		if !token.isRevoked() && !expired(token.ExpiresAt, now) {
			valid++
		}
	}
	return valid >= maxAccessTokens
}

// narrower returns the scopes, or empty scopes if they are all of the grant.
func (g *AccessGrant) narrower(scopes Scopes) Scopes {
	if scopes.String() == g.scopes.String() {
		return Scopes{}
	}
	return scopes
}

// issueRefresh makes the token the newest refresh token. It moves idleExpiresAt to RefreshIdleTTL
// from now, at most to expiresAt.
func (g *AccessGrant) issueRefresh(token Secret, settings *Settings, now time.Time) {
	g.generation, g.refresh = token.number, token.Digest()
	g.idleExpiresAt = earlier(now.Add(settings.RefreshIdleTTL), g.expiresAt)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
