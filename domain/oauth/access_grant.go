package oauth

import (
	"fmt"
	"slices"
	"time"
)

type grantState string

const (
	grantActive grantState = "active"
	grantEnded  grantState = "ended"
)

// EndReason is why a code or grant ended, for logs and for the connections page.
type EndReason string

// The reasons of I12.
const (
	EndedByCodeReplay EndReason = "code_replayed"
	EndedByReuse      EndReason = "refresh_reused"
	EndedByRevocation EndReason = "revoked_by_client"
	EndedByHostToken  EndReason = "host_token_invalid"
	EndedByLostKey    EndReason = "key_lost"
	EndedByHost       EndReason = "ended_by_host"
	EndedByPerson     EndReason = "ended_by_person"
	EndedByOperator   EndReason = "ended_by_operator"
	EndedByLimit      EndReason = "ended_by_limit"
)

// endedGrantRetention is how long an ended grant stays on record, for an audit (H6).
const endedGrantRetention = 30 * 24 * time.Hour

// AccessGrant is the permission of one client, with the access and refresh tokens issued for it. AuthorizationCode.Redeem creates it.
//
//	active --End--> ended
//
// Use Copy: `*a = *b` would share the secrets.
type AccessGrant struct {
	consent
	state         grantState
	endReason     EndReason
	endedAt       time.Time
	lastUsedAt    time.Time
	verifiedAt    time.Time // when the site last confirmed the host token
	idleExpiresAt time.Time // the last time for a refresh; without refresh tokens the expiry of the access token
	expiresAt     time.Time // GrantTTL after the approval
	generation    int       // of the newest refresh token
	refresh       Digest    // of the newest refresh token
	successor     []byte    // the newest refresh token, sealed for the holder of the one before it (J9)
	graceEndsAt   time.Time // from then on, the predecessor of the newest refresh token counts as reused (D27)
	host          sealedHostToken
	secrets       []grantSecret
}

// grantSecret is an access or refresh token of the grant, without its text.
type grantSecret struct {
	digest      Digest
	kind        SecretKind
	generation  int
	predecessor Digest // the refresh token that this one replaced
	scopes      Scopes
	wrap        []byte // the data key of the host token for the holder of this access token (J8); nil if it cannot open it
	revokedAt   time.Time
	forgetAfter time.Time // zero for a refresh token, which is kept as long as the grant, so that its reuse is detected (D27)
}

// openGrant creates the grant of a code that is being redeemed, with its first tokens.
func openGrant(code *AuthorizationCode, by Redemption, scopes Scopes, settings *Settings, now time.Time) (*AccessGrant, *Tokens, error) {
	g := &AccessGrant{
		consent: code.consent, state: grantActive, verifiedAt: code.createdAt, expiresAt: code.createdAt.Add(settings.GrantTTL), host: code.host,
	}
	accessWrap, err := g.accessWrap(by.Code, by.Access, settings)
	if err != nil {
		return nil, nil, err
	}
	tokens := g.issueAccess(by.Access, accessWrap, scopes, settings, now)
	if !g.scopes.Has(OfflineAccess) {
		g.keepHostFor(accessWrap)
		g.idleExpiresAt = now.Add(tokens.Lifetime)
		return g, tokens, nil
	}
	if g.host, err = g.host.rewrapFor(by.Code, by.Refresh, g.id, settings.Keys); err != nil {
		return nil, nil, err
	}
	return g, g.issueRefresh(by.Refresh, tokens, settings, now), nil
}

// Admits returns the caller of a request with the access token (G7, G8). It refuses every other token with InvalidToken and the same description.
func (g *AccessGrant) Admits(token Digest, resource Resource, now time.Time) (Caller, error) {
	held, found := g.findSecret(token)
	switch {
	case !found, held.kind != AccessTokenSecret, !held.revokedAt.IsZero(), expired(held.forgetAfter, now):
		return Caller{}, refuseToken("G7", "revoked or expired, or is no access token")
	case g.state != grantActive:
		return Caller{}, refuseToken("G7", "invalid because its grant has ended: "+string(g.endReason))
	case g.resource != resource:
		return Caller{}, refuseToken("G8", fmt.Sprintf("issued for %s, not for %s", g.resource, resource))
	case g.scopesOf(held).Empty():
		return Caller{}, refuseToken("G7", "left without a scope, because its grant has lost them")
	}
	return Caller{
		Grant: g.id, Client: g.client, Subject: g.subject, Roles: slices.Clone(g.roles),
		Scopes: g.scopesOf(held), ExpiresAt: held.forgetAfter,
	}, nil
}

// refuseToken returns the same description for every reason. The reason is the cause, which only the log contains.
func refuseToken(rule, reason string) error {
	return Refuse(InvalidToken, rule, "The access token is invalid or has expired", fmt.Errorf("the access token is %s", reason))
}

// RefuseUnknownToken refuses an access token that belongs to no grant. The client gets the same error as for any other invalid token (G7).
func RefuseUnknownToken() error { return refuseToken("G7", "unknown") }

// RefuseTokenWithoutKey refuses an access token that cannot open the host token, such as one issued before HostTokenInUse was set (U6).
func RefuseTokenWithoutKey() error { return refuseToken("U6", "unable to open the host token") }

// Revoke ends the grant if the token is a refresh token; it revokes an access token alone (RFC 7009 §2.1, E6, E7). It ignores a token of another
// client (E2, E8). It reports whether the grant ended.
func (g *AccessGrant) Revoke(token Digest, client string, now time.Time) (grantEnded bool) {
	held, found := g.findSecret(token)
	if !found || (client != "" && client != g.client.raw) {
		return false
	}
	switch held.kind {
	case RefreshTokenSecret:
		return g.End(EndedByRevocation, now)
	case AccessTokenSecret:
		if held.revokedAt.IsZero() {
			held.revokedAt, held.wrap = now, nil
		}
	}
	return false
}

// End ends the grant and all its tokens (I12). It reports whether the grant was active: it had not ended or expired before (I13).
func (g *AccessGrant) End(reason EndReason, now time.Time) (wasActive bool) {
	if g.state == grantEnded {
		return false
	}
	wasActive = g.active(now)
	g.state, g.endReason, g.endedAt = grantEnded, reason, now
	g.host, g.hostPrint, g.successor = sealedHostToken{}, Fingerprint{}, nil
	for i := range g.secrets {
		g.secrets[i].wrap = nil
	}
	return wasActive
}

func (g *AccessGrant) active(now time.Time) bool {
	return g.state == grantActive && !expired(g.idleExpiresAt, now)
}

// ShouldRecordUse reports whether RecordUse would change the grant.
func (g *AccessGrant) ShouldRecordUse(now time.Time) bool {
	return now.Sub(g.lastUsedAt) >= time.Minute
}

// RecordUse records when the grant was last used, at most once a minute (G15).
func (g *AccessGrant) RecordUse(now time.Time) {
	if g.ShouldRecordUse(now) {
		g.lastUsedAt = now
	}
}

func (g *AccessGrant) addSecret(secret Secret, held grantSecret) {
	held.digest = secret.Digest()
	g.secrets = append(g.secrets, held)
}

func (g *AccessGrant) findSecret(digest Digest) (*grantSecret, bool) {
	i := slices.IndexFunc(g.secrets, func(s grantSecret) bool { return s.digest == digest })
	if i < 0 {
		return nil, false
	}
	return &g.secrets[i], true
}

// scopesOf returns the scopes of a token that its grant still has.
func (g *AccessGrant) scopesOf(token *grantSecret) Scopes {
	if token.scopes.Empty() {
		return g.scopes
	}
	return token.scopes.Intersect(g.scopes)
}

// forgetAfter returns when the grant may be deleted. For an active grant it is rounded up to the hour, so that few refreshes change the index of
// a store.
func (g *AccessGrant) forgetAfter() time.Time {
	if g.state == grantEnded {
		return g.endedAt.Add(endedGrantRetention)
	}
	return g.idleExpiresAt.Add(time.Hour - 1).Truncate(time.Hour)
}

// NeedsRecheck reports whether the host token was last verified more than RecheckEvery ago, and the presented access token can open it (J8). Access
// tokens issued before RecheckEvery was set cannot; their host token is verified at the next refresh.
func (g *AccessGrant) NeedsRecheck(token Digest, settings *Settings, now time.Time) bool {
	held, found := g.findSecret(token)
	since := now.Sub(g.verifiedAt) // negative when the clock was set back, so the age is unknown (I23)
	return found && held.wrap != nil && settings.RecheckEvery > 0 && (since < 0 || since >= settings.RecheckEvery)
}

// UnsealWithAccessToken opens the sealed host token with the presented access token. It returns ErrHostTokenLost when no key fits.
func (g *AccessGrant) UnsealWithAccessToken(presented Secret, settings *Settings) (HostToken, error) {
	held, found := g.findSecret(presented.Digest())
	if !found {
		return HostToken{}, ErrHostTokenLost
	}
	opened, err := sealedHostToken{box: g.host.box, wrap: held.wrap}.open(presented, g.id, settings.Keys)
	if err != nil {
		return HostToken{}, err
	}
	opened.Forget()
	return opened.HostToken, nil
}

// PermittedBy reports whether the principal of the host token is still the person of this grant, and may still grant one of its scopes. Otherwise
// the caller ends the grant.
func (g *AccessGrant) PermittedBy(principal Principal, settings *Settings) bool {
	return principal.Subject == g.subject && !g.scopesFor(principal, settings).Without(OfflineAccess).Empty()
}

// RecordVerification records the principal of a verification that began at the given time. It can remove scopes, but never adds one. It ignores
// the roles of a verification older than the recorded one. It does not change an ended grant.
func (g *AccessGrant) RecordVerification(principal Principal, settings *Settings, began time.Time) {
	if g.state == grantEnded {
		return
	}
	g.scopes = g.scopesFor(principal, settings)
	if age := g.verifiedAt.Sub(began); age <= 0 || age > maxAnswerAge {
		g.roles, g.verifiedAt = principal.Roles, began
	}
}

// maxAnswerAge is longer than any verification. A larger age means that the clock was set back (I23).
const maxAnswerAge = time.Minute

func (g *AccessGrant) scopesFor(principal Principal, settings *Settings) Scopes {
	if principal.Scopes == nil {
		return g.scopes
	}
	return g.scopes.Intersect(settings.ceiling(principal))
}

// accessWrap wraps the data key for an access token. It returns nil unless access tokens have to open the host token.
func (g *AccessGrant) accessWrap(holder, access Secret, settings *Settings) ([]byte, error) {
	if !settings.accessTokensUnseal() || g.host.box == nil {
		return nil, nil
	}
	held, err := g.host.rewrapFor(holder, access, g.id, settings.Keys)
	return held.wrap, err
}

// keepHostFor keeps the box only if an access token can open it. It is for grants without refresh tokens (J4).
func (g *AccessGrant) keepHostFor(accessWrap []byte) {
	if accessWrap == nil {
		g.host = sealedHostToken{}
	}
	g.host.wrap = nil
}
