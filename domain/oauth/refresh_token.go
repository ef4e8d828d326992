package oauth

import (
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// Tokens is a successful token response (RFC 6749 §5.1).
type Tokens struct {
	Access   Secret
	Refresh  Secret // empty unless the grant has OfflineAccess
	Scopes   Scopes
	Lifetime time.Duration // of the access token
}

// RefreshRequest is a client's request with grant type refresh_token (RFC 6749 §6), with fresh secrets for the response.
type RefreshRequest struct {
	Client    string
	Token     Secret
	Resources []string
	Scope     string
	Principal Principal          // from the verification of the host token
	Host      *UnsealedHostToken // the verified host token; may be nil
	Access    Secret
	Successor Secret
}

// MayRefresh checks everything that Refresh checks, so that no host token is verified in vain. The cause is ErrReused if the grace window of the
// presented token is over or its successor was used; the caller then ends the grant (D27).
func (g *AccessGrant) MayRefresh(by RefreshRequest, settings *Settings, now time.Time) error {
	held, found := g.findSecret(by.Token.Digest())
	switch {
	case !found, held.kind != RefreshTokenSecret, !settings.protects(g.resource):
		return refuseGrant("D22", errors.New("it is no refresh token of this server"))
	case g.client.raw != by.Client:
		return refuseGrant("D22", errors.New("it belongs to another client"))
	case g.state == grantEnded:
		return refuseGrant("D23", errors.New("the grant has ended: "+string(g.endReason)))
	case expired(g.idleExpiresAt, now): // never later than expiresAt
		return refuseGrant("D23", errors.New("the grant has expired"))
	case held.generation != g.generation && !g.inGrace(held, settings, now):
		return refuseGrant("D27", ErrReused)
	}
	if err := g.resource.Accepts(by.Resources); err != nil {
		return err
	}
	requested, err := by.scopes()
	if err == nil && !g.scopes.Contains(requested) {
		return Refuse(InvalidScope, "D24", "a requested scope was not granted")
	}
	return err
}

// scopes returns the scopes of the new access token, empty for all. OfflineAccess alone permits nothing (A25).
func (r RefreshRequest) scopes() (Scopes, error) {
	requested, err := ParseScopes(r.Scope)
	if requested.Without(OfflineAccess).Empty() {
		return Scopes{}, err
	}
	return requested, err
}

// inGrace reports whether the token is the direct predecessor of the newest one and was replaced within the grace window.
func (g *AccessGrant) inGrace(held *grantSecret, settings *Settings, now time.Time) bool {
	left := g.graceEndsAt.Sub(now) // longer than the window when the clock was set back; up to twice the window is tolerated (I23)
	return held.generation == g.generation-1 && left > 0 && left <= 2*settings.RefreshGrace
}

// UnsealWithRefreshToken opens the sealed host token with the presented refresh token. The caller must call Forget on the
// result. It returns ErrHostTokenLost when no key fits (J6).
func (g *AccessGrant) UnsealWithRefreshToken(presented Secret, settings *Settings) (*UnsealedHostToken, error) {
	holder, err := g.holder(presented, settings)
	if err != nil {
		return nil, err
	}
	return g.host.open(holder, g.id, settings.Keys)
}

// holder returns the newest refresh token, for which the host token is sealed. The direct predecessor unseals it.
func (g *AccessGrant) holder(presented Secret, settings *Settings) (Secret, error) {
	held, found := g.findSecret(presented.Digest())
	switch {
	case !found:
		return Secret{}, fmt.Errorf("opening the host token: %w", ErrHostTokenLost)
	case held.generation == g.generation:
		return presented, nil
	}
	return g.successorOf(presented, settings.Keys)
}

// Refresh issues an access token and the next refresh token (D26). Every request with the replaced token within the grace window gets the same
// successor, so that parallel refreshes converge (D27, I15). now is the time at which the request arrived, before the host token was verified.
func (g *AccessGrant) Refresh(by RefreshRequest, settings *Settings, now time.Time) (*Tokens, error) {
	if err := g.MayRefresh(by, settings, now); err != nil {
		return nil, err
	}
	requested, err := by.scopes()
	if err != nil {
		return nil, err
	}
	g.RecordVerification(by.Principal, settings, now)
	if !g.scopes.Contains(requested) { // RecordVerification may have removed one
		return nil, Refuse(InvalidScope, "D24", "a requested scope is not granted any more")
	}
	held, _ := g.findSecret(by.Token.Digest())
	if held.generation != g.generation {
		return g.repeat(by, requested, settings, now)
	}
	return g.rotate(by, requested, settings, now)
}

// rotate issues an access token and replaces the presented refresh token.
func (g *AccessGrant) rotate(by RefreshRequest, requested Scopes, settings *Settings, now time.Time) (*Tokens, error) {
	keys, err := settings.Keys.Snapshot()
	if err != nil {
		return nil, err
	}
	wrap, err := g.accessWrap(by.Token, by.Access, settings)
	if err != nil {
		return nil, err
	}
	host, err := g.rewrapForSuccessor(by, keys)
	if err != nil {
		return nil, err
	}
	sealers, err := successorSealers(by.Token, g.id, keys)
	if err != nil {
		return nil, err
	}
	g.host, g.successor, g.graceEndsAt = host, sealers.Seal([]byte(by.Successor.Reveal())), now.Add(settings.RefreshGrace)
	return g.issueRefresh(by.Successor, g.issueAccess(by.Access, wrap, requested, settings, now), settings, now), nil
}

func (g *AccessGrant) rewrapForSuccessor(by RefreshRequest, keys seal.KeyRing) (sealedHostToken, error) {
	if by.Host.opens(g.host) {
		return g.host.rewrapDataKey(by.Host.dataKey, by.Successor, g.id, keys)
	}
	return g.host.rewrapFor(by.Token, by.Successor, g.id, keys)
}

// repeat issues an access token with the existing successor of the presented refresh token.
func (g *AccessGrant) repeat(by RefreshRequest, requested Scopes, settings *Settings, now time.Time) (*Tokens, error) {
	successor, err := g.successorOf(by.Token, settings.Keys)
	if err != nil {
		return nil, err
	}
	wrap, err := g.accessWrap(successor, by.Access, settings)
	if err != nil {
		return nil, err
	}
	tokens := g.issueAccess(by.Access, wrap, requested, settings, now)
	tokens.Refresh = successor
	return tokens, nil
}

// successorSealers returns the sealers that only the holder of the replaced refresh token can derive (J9).
func successorSealers(old Secret, grant string, keys seal.KeyRing) (seal.Sealers, error) {
	return keys.HolderSealers(old, seal.Binding{Kind: "successor", Owner: grant})
}

func (g *AccessGrant) successorOf(old Secret, keys seal.KeyRing) (Secret, error) {
	sealers, err := successorSealers(old, g.id, keys)
	if err != nil {
		return Secret{}, err
	}
	text, err := sealers.Open(g.successor)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrHostTokenLost, err)
	}
	return Secret{conceal(string(text))}, nil
}

// issueAccess adds an access token, which expires no later than the grant (D28). Empty scopes mean all.
func (g *AccessGrant) issueAccess(token Secret, wrap []byte, scopes Scopes, settings *Settings, now time.Time) *Tokens {
	end := earlier(now.Add(settings.AccessTokenTTL), g.expiresAt)
	held := grantSecret{kind: AccessTokenSecret, scopes: scopes, wrap: wrap, forgetAfter: end}
	if scopes.String() == g.scopes.String() {
		held.scopes = Scopes{}
	}
	g.addSecret(token, held)
	return &Tokens{Access: token, Scopes: g.scopesOf(&held), Lifetime: end.Sub(now)}
}

// issueRefresh adds the refresh token of the next generation and moves idleExpiresAt, never past expiresAt (D28).
func (g *AccessGrant) issueRefresh(token Secret, tokens *Tokens, settings *Settings, now time.Time) *Tokens {
	g.generation++
	g.idleExpiresAt = earlier(now.Add(settings.RefreshIdleTTL), g.expiresAt)
	g.addSecret(token, grantSecret{kind: RefreshTokenSecret, generation: g.generation, predecessor: g.refresh})
	g.refresh = token.Digest()
	tokens.Refresh = token
	return tokens
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
