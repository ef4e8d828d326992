package oauth

import "time"

// NeedsRecheck reports that the site was last asked too long ago, and that the presented access token can open the host token
// for asking again (J8). Tokens from before the setting was switched on cannot; their next refresh asks.
func (g *AccessGrant) NeedsRecheck(token Digest, settings *Settings, now time.Time) bool {
	held, found := g.held(token)
	since := now.Sub(g.verifiedAt) // below zero when the clock was set back, and then nobody knows (I23)
	return found && held.wrap != nil && settings.RecheckEvery > 0 && (since < 0 || since >= settings.RecheckEvery)
}

// HostTokenInUse opens the sealed host token with the presented access token; ErrHostTokenLost when no key fits, as for one from
// before access tokens could.
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

// StandsFor reports whether the site still describes the person of this grant, with a token that may grant anything of it. When
// it does not, the host token holds no longer for this grant.
func (g *AccessGrant) StandsFor(principal Principal, settings *Settings) bool {
	return principal.Subject == g.subject && !g.scopesUnder(principal, settings).Without(OfflineAccess).Empty()
}

// Reverified notes what the site said about the person behind the host token when it was asked. Scopes only ever become fewer.
// Of two answers the later one stays, whichever of them comes first; a grant that has ended is left alone.
func (g *AccessGrant) Reverified(principal Principal, settings *Settings, asked time.Time) {
	if g.state == grantEnded {
		return
	}
	g.own()
	g.scopes = g.scopesUnder(principal, settings)
	if age := g.verifiedAt.Sub(asked); age <= 0 || age > answerLife {
		g.roles, g.verifiedAt = principal.Roles, asked
	}
}

// answerLife is longer than any answer is under way: what seems older still comes from a clock that was set back (I23).
const answerLife = time.Minute

func (g *AccessGrant) scopesUnder(principal Principal, settings *Settings) Scopes {
	if principal.Scopes == nil {
		return g.scopes
	}
	return g.scopes.Intersect(settings.ceiling(principal))
}

// accessWrap lets the access token open the host token too; nil unless that is needed in use.
func (g *AccessGrant) accessWrap(holder, access Secret, settings *Settings) ([]byte, error) {
	if !settings.opensHostInUse() || g.host.box == nil {
		return nil, nil
	}
	held, err := g.host.rewrapFor(holder, access, g.id, settings.Keys)
	return held.wrap, err
}

// keepHostFor leaves the box only to an access token that can open it; without refresh tokens nobody else will (J4).
func (g *AccessGrant) keepHostFor(accessWrap []byte) {
	if accessWrap == nil {
		g.host = sealedHost{}
	}
	g.host.wrap = nil
}
