package oauth

import (
	"errors"
	"time"
)

// issuedCode is the authorization code of a grant: it is redeemed exactly once, by whoever proves the challenge (I2-I8).
type issuedCode struct {
	digest     Digest
	challenge  CodeChallenge
	expiresAt  time.Time
	redeemedAt time.Time
}

// Redemption is a client's request to exchange a code, with the fresh secrets for the answer.
type Redemption struct {
	Client      string
	Code        Secret
	Verifier    string
	RedirectURI string // optional, because PKCE binds (D15)
	Resources   []string
	Scope       string
	Access      Secret
	Refresh     Secret
}

// CodeRetryWindow is how long after its redemption a code that is sent again counts as a retry, such as a proxy's, and not as a replay
// (D19).
const CodeRetryWindow = 10 * time.Second

// MayRedeem refuses what Redeem would refuse, but for a box that no key fits. A second redemption that proves everything is always
// InvalidGrant: with the cause ErrRetried within CodeRetryWindow, and later with ErrReplayed, upon which the caller must end the grant
// (D19).
func (g *AccessGrant) MayRedeem(by Redemption, settings *Settings, now time.Time) error {
	switch {
	case g.state == ended:
		return refuseGrant("D21", errors.New("the grant has ended: "+string(g.endReason)))
	case !settings.protects(g.resource), g.code.digest != by.Code.Digest():
		return refuseGrant("D12", errors.New("it is no code of this server"))
	case g.client.raw != by.Client:
		return refuseGrant("D13", errors.New("it belongs to another client"))
	case by.RedirectURI != "" && by.RedirectURI != g.redirect.raw:
		return refuseGrant("D15", errors.New("the redirect_uri is not the one of the authorization request"))
	case !g.code.challenge.ProvedBy(by.Verifier):
		return refuseGrant("D16", errors.New("the code_verifier does not fit the code_challenge"))
	case g.state == active && now.Sub(g.code.redeemedAt) <= CodeRetryWindow:
		return refuseGrant("D19", ErrRetried)
	case g.state == active:
		return refuseGrant("D19", ErrReplayed)
	case expired(g.code.expiresAt, now):
		return refuseGrant("D14", errors.New("the code has expired"))
	}
	if err := g.resource.Accepts(by.Resources); err != nil {
		return err
	}
	_, err := g.narrowed(by.Scope)
	return err
}

// Redeem spends the code and makes the grant active (I2). Every refusal leaves the code as it was.
func (g *AccessGrant) Redeem(by Redemption, settings *Settings, now time.Time) (*Tokens, error) {
	if err := g.MayRedeem(by, settings, now); err != nil {
		return nil, err
	}
	scopes, err := g.narrowed(by.Scope)
	if err != nil {
		return nil, err
	}
	access, err := g.accessWrap(by.Code, by.Access, settings)
	if err != nil {
		return nil, unopened(err)
	}
	g.own()
	g.state, g.code.redeemedAt = active, now
	tokens := g.issueAccess(by.Access, access, scopes, settings, now)
	if !g.scopes.Has(OfflineAccess) {
		g.keepHostFor(access)
		g.idleEnd = now.Add(tokens.Lifetime)
		return tokens, nil
	}
	g.host, err = g.host.rewrapFor(by.Code, by.Refresh, g.id, settings.Keys)
	if err != nil {
		return nil, unopened(err)
	}
	return g.issueRefresh(by.Refresh, tokens, settings, now), nil
}

// unopened refuses a code whose box no key fits; that the keys cannot be had just now is an outage.
func unopened(err error) error {
	if errors.Is(err, ErrHostTokenLost) {
		return refuseGrant("J4", err)
	}
	return err
}

// narrowed returns the scopes for a code exchange: those granted that the request repeats, all when it names none (D18).
func (g *AccessGrant) narrowed(scope string) (Scopes, error) {
	asked, err := ParseScopes(scope)
	if err != nil || asked.Empty() {
		return g.scopes, err
	}
	kept := g.scopes.Intersect(asked)
	switch {
	case kept.Empty():
		return Scopes{}, Refuse(InvalidScope, "D18", "none of the requested scopes was granted")
	case kept.Without(OfflineAccess).Empty(): // it opens nothing by itself (A25)
		return g.scopes, nil
	}
	return kept, nil
}

// refuseGrant is the one answer for every code or refresh token that cannot be used (D32).
func refuseGrant(rule string, cause error) error {
	return Refuse(InvalidGrant, rule, "The code or refresh token is invalid, expired or already used", cause)
}

// UnknownGrant is the refusal for a code or refresh token that belongs to no grant; a client cannot tell it from any other.
func UnknownGrant() error { return refuseGrant("D12, D22", errors.New("it is unknown")) }
