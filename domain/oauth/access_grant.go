package oauth

import (
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/toolset"
)

// EndReason is why a code or grant ended, for logs and for the connections page.
type EndReason string

// The reasons why a grant ended.
const (
	EndedByCodeReplay EndReason = "code_replayed"
	EndedByReuse      EndReason = "refresh_reused"
	EndedByRevocation EndReason = "revoked_by_client"
	EndedByHostToken  EndReason = "host_token_invalid"
	EndedByNewPerson  EndReason = "other_person"
	EndedByLostScopes EndReason = "no_scope_left"
	EndedByLostKey    EndReason = "key_lost"
	EndedByHost       EndReason = "ended_by_host"
	EndedByPerson     EndReason = "ended_by_person"
	EndedByOperator   EndReason = "ended_by_operator"
	EndedByLimit      EndReason = "ended_by_limit"
)

// endedGrantRetention is how long an ended grant stays on record, for an audit.
const endedGrantRetention = 30 * 24 * time.Hour

// AccessGrant is the permission of one client, with its access and refresh tokens. It has a bounded
// size. Use Copy: `*a = *b` would share the tokens.
type AccessGrant struct {
	consent
	endedAt       time.Time
	revokedAt     time.Time // when a token was revoked last: an access token, or all of them by the end of the grant
	verifiedAt    time.Time // when the site last confirmed the host token
	idleExpiresAt time.Time // the last time for a refresh; without refresh tokens the expiry of the access token
	expiresAt     time.Time // as long after the approval as the person has chosen, at most GrantTTL
	generation    uint32    // number of the newest refresh token; 0 without refresh tokens
	refresh       Digest    // of the newest refresh token
	rotations     []Rotation
	issuedAccess  uint32 // number of the newest access token
	access        []AccessToken
	lastUse       Use
	tools         toolset.Pins
}

// openGrant creates the grant of a code that is being redeemed, with its first tokens.
func openGrant(code *AuthorizationCode, by Redemption, scopes Scopes, settings *Settings, now time.Time) (*AccessGrant,
	*Tokens, error) {
	g := &AccessGrant{
		consent:    code.consent,
		verifiedAt: code.createdAt,
		expiresAt:  code.grantEnd,
	}
	g.version, g.state = 0, grantActive // no store has the grant yet
	g.client.AuthMethod = code.client.AuthMethod.chosen(by.Signed)
	tokens, err := g.issueAccess(by.Fresh.Access, by.Code, scopes, settings, now)
	if err != nil {
		return nil, nil, err
	}
	if !g.scopes.Has(OfflineAccess) {
		if g.access[0].Wrap == nil { // the only token cannot open the box
			g.host = sealedHostToken{}
		}
		g.host.wrap = nil // that of the code
		g.idleExpiresAt = now.Add(tokens.Lifetime)
		return g, tokens, nil
	}
	tokens.Refresh, err = NewSecret(RefreshTokenSecret, g.id, 1, by.Fresh.Refresh, settings.Keys)
	if err != nil {
		return nil, nil, err
	}
	if g.host, err = g.host.rewrapFor(by.Code, tokens.Refresh, g.id, settings.Keys); err != nil {
		return nil, nil, err
	}
	g.issueRefresh(tokens.Refresh, settings, now)
	return g, tokens, nil
}

// Revoke ends the grant of a refresh token, or an access token alone (RFC 7009 §2.1). It ignores a
// token of another client; client is "" if the request names none.
func (g *AccessGrant) Revoke(token Secret, client string, now time.Time) (ended bool) {
	if client != "" && client != g.client.ID.raw {
		return false
	}
	if token.kind() == AccessTokenSecret {
		if found := g.findAccess(token); found != nil && !found.isRevoked() && g.state != grantEnded {
			found.RevokedAt, found.Wrap, g.revokedAt = now, nil, now
		}
		return false
	}
	return g.issuedRefresh(token) && g.End(EndedByRevocation, now)
}

// EndReason returns why the grant has ended, "" while it has not.
func (g *AccessGrant) EndReason() EndReason { return g.endReason }

// End ends the grant and all its tokens.
func (g *AccessGrant) End(reason EndReason, now time.Time) (wasActive bool) {
	if g.state == grantEnded {
		return false
	}
	wasActive = g.active(now)
	g.state, g.endReason, g.endedAt, g.revokedAt = grantEnded, reason, now, now
	g.host, g.rotations, g.access = sealedHostToken{}, nil, nil
	return wasActive
}

func (g *AccessGrant) active(now time.Time) bool {
	return g.state == grantActive && !expired(g.idleExpiresAt, now)
}

// forgetAfter returns when the grant may be deleted. For an active grant it is rounded up to the
// day, so that few refreshes change the index of a store.
func (g *AccessGrant) forgetAfter() time.Time {
	if g.state == grantEnded {
		return g.endedAt.Add(endedGrantRetention)
	}
	const day = 24 * time.Hour
	return g.idleExpiresAt.Add(day - 1).Truncate(day)
}

// ReasonToEnd returns why a grant ends when the site names this principal for its host token, "" if
// it goes on: the person is the same, or the first whom the site names, and may still grant one of
// the scopes.
func (c *consent) ReasonToEnd(principal Principal, settings *Settings) EndReason {
	switch {
	case principal.Subject != c.subject && !c.isKeyed():
		return EndedByNewPerson
	case c.scopesFor(principal, settings).Without(OfflineAccess).Empty():
		return EndedByLostScopes
	}
	return ""
}

// isKeyed reports whether the subject is a KeyedSubject, perhaps of a token that was replaced.
func (c *consent) isKeyed() bool {
	return strings.HasPrefix(c.subject, keyedPrefix) && len(c.subject) == len(keyedPrefix)+2*len(c.hostPrint)
}

// RecordVerification records the principal of a verification, but not over the roles and token id
// of one that began later. It can remove scopes, but never adds one.
func (g *AccessGrant) RecordVerification(principal Principal, settings *Settings, began time.Time) {
	if g.state == grantEnded {
		return
	}
	g.scopes = g.scopesFor(principal, settings)
	if g.isKeyed() && principal.Subject != "" {
		g.subject, g.account = principal.Subject, principal.Name
	}
	if age := g.verifiedAt.Sub(began); age <= 0 || age > maxAnswerAge {
		g.roles, g.tokenID, g.verifiedAt = principal.Roles, principal.TokenID, began
	}
}

// maxAnswerAge is longer than any verification. A larger age means that the clock was set back.
const maxAnswerAge = time.Minute

func (c *consent) scopesFor(principal Principal, settings *Settings) Scopes {
	if principal.Scopes == nil {
		return c.scopes
	}
	return c.scopes.Intersect(settings.ceiling(principal, c.resource))
}
