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

// AccessGrant is the family of access and refresh tokens that a client got for a code. AuthorizationCode.Redeem opens it.
//
//	active --End--> ended
//
// Use Copy: `*a = *b` would share the secrets.
type AccessGrant struct {
	consent
	state       grantState
	endReason   EndReason
	endedAt     time.Time
	lastUsedAt  time.Time
	verifiedAt  time.Time // when the site last confirmed the host token
	idleEnd     time.Time // no refresh after it; without refresh tokens the end of the access token
	absoluteEnd time.Time
	generation  int       // of the newest refresh token
	refresh     Digest    // of the newest refresh token
	successor   []byte    // the newest refresh token, sealed for the holder of the one before it (J9)
	graceEnd    time.Time // from here on the refresh token before the newest counts as reused (D27)
	host        sealedHost
	secrets     []heldSecret
}

// heldSecret is a secret of the grant without its text.
type heldSecret struct {
	digest      Digest
	kind        SecretKind
	generation  int
	predecessor Digest // the refresh token that this one replaced
	scopes      Scopes
	wrap        []byte // of an access token that can open the host token (J8)
	revokedAt   time.Time
	forgetAfter time.Time // zero for a refresh token, which is kept as long as the grant, so that its reuse is detected (D27)
}

// openGrant opens the grant of a code that is being redeemed, with its first tokens.
func openGrant(code *AuthorizationCode, by Redemption, scopes Scopes, settings *Settings, now time.Time) (*AccessGrant, *Tokens, error) {
	g := &AccessGrant{
		consent: code.consent, state: grantActive, verifiedAt: code.createdAt, absoluteEnd: code.createdAt.Add(settings.GrantTTL), host: code.host,
	}
	accessWrap, err := g.accessWrap(by.Code, by.Access, settings)
	if err != nil {
		return nil, nil, err
	}
	tokens := g.issueAccess(by.Access, accessWrap, scopes, settings, now)
	if !g.scopes.Has(OfflineAccess) {
		g.keepHostFor(accessWrap)
		g.idleEnd = now.Add(tokens.Lifetime)
		return g, tokens, nil
	}
	if g.host, err = g.host.rewrapFor(by.Code, by.Refresh, g.id, settings.Keys); err != nil {
		return nil, nil, err
	}
	return g, g.issueRefresh(by.Refresh, tokens, settings, now), nil
}

// Admits returns the caller of a request with the access token (G7, G8). It refuses with InvalidToken and one description for every reason.
func (g *AccessGrant) Admits(token Digest, resource Resource, now time.Time) (Caller, error) {
	held, found := g.held(token)
	switch {
	case !found, held.kind != AccessTokenSecret, !held.revokedAt.IsZero(), expired(held.forgetAfter, now):
		return Caller{}, refuseToken("G7", "revoked, expired or no access token")
	case g.state != grantActive:
		return Caller{}, refuseToken("G7", "worthless because its grant has ended: "+string(g.endReason))
	case g.resource != resource:
		return Caller{}, refuseToken("G8", "issued for another resource")
	case g.scopesOf(held).Empty():
		return Caller{}, refuseToken("G7", "left without any scope that its grant still has")
	}
	return Caller{
		Grant: g.id, Client: g.client, Subject: g.subject, Roles: slices.Clone(g.roles),
		Scopes: g.scopesOf(held), ExpiresAt: held.forgetAfter,
	}, nil
}

// refuseToken gives the client one description for every reason; the reason is for the log.
func refuseToken(rule, reason string) error {
	return Refuse(InvalidToken, rule, "The access token is invalid or has expired", fmt.Errorf("the access token is %s", reason))
}

// UnknownToken is the refusal for a bearer that belongs to no grant; a client cannot tell it from any other (G7).
func UnknownToken() error { return refuseToken("G7", "unknown") }

// UnopeningToken is the refusal for an access token that cannot open the host token, such as one that was issued before HostTokenInUse was set
// (U6).
func UnopeningToken() error { return refuseToken("U6", "unable to open the host token") }

// Revoke ends the grant of a refresh token, but of an access token only the token itself (E6, E7). It ignores a token of another client (E2, E8).
// It reports whether the grant ended.
func (g *AccessGrant) Revoke(token Digest, client string, now time.Time) (grantEnded bool) {
	held, found := g.held(token)
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

// End ends the grant and all its tokens (I12). It reports whether the grant was alive; one that ended before or idled too long was not (I13).
func (g *AccessGrant) End(reason EndReason, now time.Time) (wasAlive bool) {
	if g.state == grantEnded {
		return false
	}
	wasAlive = g.alive(now)
	g.state, g.endReason, g.endedAt = grantEnded, reason, now
	g.host, g.hostPrint, g.successor = sealedHost{}, Fingerprint{}, nil
	for i := range g.secrets {
		g.secrets[i].wrap = nil
	}
	return wasAlive
}

func (g *AccessGrant) alive(now time.Time) bool {
	return g.state == grantActive && !expired(g.idleEnd, now)
}

// NotesUse reports whether Used would change the grant.
func (g *AccessGrant) NotesUse(now time.Time) bool { return now.Sub(g.lastUsedAt) >= time.Minute }

// Used records when the grant was last used, at most once a minute (G15).
func (g *AccessGrant) Used(now time.Time) {
	if g.NotesUse(now) {
		g.lastUsedAt = now
	}
}

func (g *AccessGrant) hold(secret Secret, held heldSecret) {
	held.digest = secret.Digest()
	g.secrets = append(g.secrets, held)
}

func (g *AccessGrant) held(digest Digest) (*heldSecret, bool) {
	i := slices.IndexFunc(g.secrets, func(s heldSecret) bool { return s.digest == digest })
	if i < 0 {
		return nil, false
	}
	return &g.secrets[i], true
}

func (g *AccessGrant) scopesOf(token *heldSecret) Scopes {
	if token.scopes.Empty() {
		return g.scopes
	}
	return token.scopes.Intersect(g.scopes)
}

// forgetAfter returns when the grant may be deleted. For an active grant it is rounded up to the hour, because a store has to move a grant in
// its index when the time changes.
func (g *AccessGrant) forgetAfter() time.Time {
	if g.state == grantEnded {
		return g.endedAt.Add(endedGrantRetention)
	}
	return g.idleEnd.Add(time.Hour - 1).Truncate(time.Hour)
}

// NeedsRecheck reports whether the host token was last verified more than RecheckEvery ago, and the presented access token can open it (J8).
// Tokens that were issued before the setting was switched on cannot; the host token is then verified at the next refresh.
func (g *AccessGrant) NeedsRecheck(token Digest, settings *Settings, now time.Time) bool {
	held, found := g.held(token)
	since := now.Sub(g.verifiedAt) // negative when the clock was set back, so the age is unknown (I23)
	return found && held.wrap != nil && settings.RecheckEvery > 0 && (since < 0 || since >= settings.RecheckEvery)
}

// HostTokenInUse opens the sealed host token with the presented access token. It returns ErrHostTokenLost when no key fits.
func (g *AccessGrant) HostTokenInUse(presented Secret, settings *Settings) (HostToken, error) {
	held, found := g.held(presented.Digest())
	if !found {
		return HostToken{}, ErrHostTokenLost
	}
	opened, err := sealedHost{box: g.host.box, wrap: held.wrap}.open(presented, g.id, settings.Keys)
	if err != nil {
		return HostToken{}, err
	}
	opened.Forget()
	return opened.HostToken, nil
}

// StandsFor reports whether the principal of the host token is still the person of this grant and may still grant one of its scopes. If not,
// the caller ends the grant.
func (g *AccessGrant) StandsFor(principal Principal, settings *Settings) bool {
	return principal.Subject == g.subject && !g.scopesUnder(principal, settings).Without(OfflineAccess).Empty()
}

// Reverified records the principal that the site returned for a request at the time asked. It removes scopes and never adds one. An answer that
// is older than the recorded one changes no roles. An ended grant stays unchanged.
func (g *AccessGrant) Reverified(principal Principal, settings *Settings, asked time.Time) {
	if g.state == grantEnded {
		return
	}
	g.scopes = g.scopesUnder(principal, settings)
	if age := g.verifiedAt.Sub(asked); age <= 0 || age > maxAnswerAge {
		g.roles, g.verifiedAt = principal.Roles, asked
	}
}

// maxAnswerAge is longer than any verification takes. An answer that seems older comes from a clock that was set back (I23).
const maxAnswerAge = time.Minute

func (g *AccessGrant) scopesUnder(principal Principal, settings *Settings) Scopes {
	if principal.Scopes == nil {
		return g.scopes
	}
	return g.scopes.Intersect(settings.ceiling(principal))
}

// accessWrap wraps the data key for an access token. It returns nil unless access tokens have to open the host token.
func (g *AccessGrant) accessWrap(holder, access Secret, settings *Settings) ([]byte, error) {
	if !settings.opensHostInUse() || g.host.box == nil {
		return nil, nil
	}
	held, err := g.host.rewrapFor(holder, access, g.id, settings.Keys)
	return held.wrap, err
}

// keepHostFor keeps the box only if an access token can open it. It is for grants without refresh tokens (J4).
func (g *AccessGrant) keepHostFor(accessWrap []byte) {
	if accessWrap == nil {
		g.host = sealedHost{}
	}
	g.host.wrap = nil
}
