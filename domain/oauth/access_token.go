package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pasteport/pasteport/domain/uri"
)

// maxAccessTokens is how many access tokens of a grant are valid at once, so that a grant has a
// bounded size. One more ends the oldest.
const maxAccessTokens = 8

// AccessToken is an access token of a grant, without its text.
type AccessToken struct {
	Number    uint32    `json:"n"`
	Digest    Digest    `json:"d"`
	Scopes    string    `json:"s,omitempty"` // separated by spaces; "" for all scopes of the grant
	Wrap      []byte    `json:"w,omitempty"` // the data key, encrypted for this token; nil if it opens no host token
	IssuedAt  time.Time `json:"i,omitzero"`
	ExpiresAt time.Time `json:"e,omitzero"`
	RevokedAt time.Time `json:"r,omitzero"`
}

// Admits returns the caller of a request with the access token, or refuses with InvalidToken.
func (g *AccessGrant) Admits(presented Secret, resource Resource, now time.Time) (Caller, error) {
	token := g.findAccess(presented)
	switch {
	case g.state != grantActive:
		return Caller{}, refuseToken("G7", "invalid because its grant has ended: "+string(g.endReason))
	case token == nil, !token.RevokedAt.IsZero(), expired(token.ExpiresAt, now):
		return Caller{}, refuseToken("G7", "revoked, expired, or older than the newest eight of its grant")
	case g.resource != resource:
		return Caller{}, refuseToken("G8", fmt.Sprintf("issued for %s, not for %s", g.resource, resource))
	case g.scopesOf(token).Empty():
		return Caller{}, refuseToken("G7", "left without a scope, because its grant has lost them")
	}
	return Caller{
		Grant:      g.id,
		Client:     g.client.ID,
		ClientName: g.client.Name,
		Subject:    g.subject,
		Account:    g.accountName(),
		Roles:      slices.Clone(g.roles),
		Scopes:     g.scopesOf(token),
		IssuedAt:   token.IssuedAt,
		ExpiresAt:  token.ExpiresAt,
		Tools:      g.tools,
	}, nil
}

// refuseToken returns the same description for every reason. Only the log contains the reason.
func refuseToken(rule, reason string) error {
	cause := fmt.Errorf("the access token is %s", reason)
	return Refuse(InvalidToken, rule, "The access token is invalid or has expired", cause)
}

// RefuseUnknownToken refuses an access token that belongs to no grant.
func RefuseUnknownToken() error { return refuseToken("G7", "unknown") }

// RefuseTokenWithoutKey refuses an access token that cannot open the host token.
func RefuseTokenWithoutKey() error { return refuseToken("U6", "unable to open the host token") }

// findAccess returns the access token of the grant, nil if the grant does not have it.
func (g *AccessGrant) findAccess(presented Secret) *AccessToken {
	i := slices.IndexFunc(g.access, func(token AccessToken) bool { return token.Number == presented.number })
	if i < 0 || g.access[i].Digest != presented.Digest() {
		return nil
	}
	return &g.access[i]
}

// scopesOf returns the scopes of a token that its grant still has.
func (g *AccessGrant) scopesOf(token *AccessToken) Scopes {
	if token.Scopes == "" {
		return g.scopes
	}
	return restoreScopes(token.Scopes).Intersect(g.scopes)
}

// issueAccess adds an access token with the scopes, or all if empty, and forgets expired tokens.
// holder is the code or refresh token that can open the data key of the host token.
func (g *AccessGrant) issueAccess(entropy Entropy, holder Secret, scopes Scopes, settings *Settings,
	now time.Time) (*Tokens, error) {
	secret, err := NewSecret(AccessTokenSecret, g.id, g.issuedAccess+1, entropy, settings.Keys)
	if err != nil {
		return nil, err
	}
	var held sealedHostToken
	if settings.accessTokensUnseal() && !g.host.isEmpty() {
		if held, err = g.host.rewrapFor(holder, secret, g.id, settings.Keys); err != nil {
			return nil, err
		}
	}
	g.issuedAccess++
	token := AccessToken{
		Number:    g.issuedAccess,
		Digest:    secret.Digest(),
		Scopes:    g.narrower(scopes).String(),
		Wrap:      held.wrap,
		IssuedAt:  now,
		ExpiresAt: earlier(now.Add(settings.AccessTokenTTL), g.expiresAt),
	}
	kept := slices.DeleteFunc(slices.Clone(g.access), func(old AccessToken) bool { return expired(old.ExpiresAt, now) })
	for len(kept) >= maxAccessTokens { // a revoked one goes first, so that it ends no valid one
		i := max(0, slices.IndexFunc(kept, AccessToken.isRevoked)) // the oldest if none is revoked
		kept = slices.Delete(kept, i, i+1)
	}
	g.access = append(kept, token)
	return g.respond(secret, &token, now), nil
}

func (t AccessToken) isRevoked() bool { return !t.RevokedAt.IsZero() }

// respond returns the response with an access token.
func (g *AccessGrant) respond(secret Secret, token *AccessToken, now time.Time) *Tokens {
	return &Tokens{Access: secret, Scopes: g.scopesOf(token), Lifetime: token.ExpiresAt.Sub(now)}
}

// NeedsRecheck reports whether the host token was last verified more than RecheckEvery ago, and the
// presented access token can open it.
func (g *AccessGrant) NeedsRecheck(presented Secret, settings *Settings, now time.Time) bool {
	token := g.findAccess(presented)
	since := now.Sub(g.verifiedAt) // negative when the clock was set back, so the age is unknown
	due := since < 0 || since >= settings.RecheckEvery
	return token != nil && token.Wrap != nil && settings.RecheckEvery > 0 && due
}

// UnsealWithAccessToken opens the sealed host token, or returns ErrHostTokenLost.
func (g *AccessGrant) UnsealWithAccessToken(presented Secret, settings *Settings) (HostToken, error) {
	token := g.findAccess(presented)
	if token == nil {
		return HostToken{}, fmt.Errorf("opening the host token: %w", ErrHostTokenLost)
	}
	host := g.host
	host.wrap = token.Wrap
	opened, err := host.open(presented, g.id, settings.Keys)
	if err != nil {
		return HostToken{}, err
	}
	opened.Forget()
	return opened.HostToken, nil
}

// Use is the last use of a grant.
type Use struct {
	At     time.Time // recorded at most once a minute for each access token
	Access uint32    // the largest number of an access token that was used
}

// NewUse returns the use of a grant with an access token; ok is false when nothing is new.
func (g *AccessGrant) NewUse(presented Secret, now time.Time) (use Use, ok bool) {
	if now.Sub(g.lastUse.At) < time.Minute && presented.number <= g.lastUse.Access {
		return Use{}, false
	}
	return Use{At: now, Access: max(presented.number, g.lastUse.Access)}, true
}

// RecordUse records a use of the grant that a store may not have yet.
func (g *AccessGrant) RecordUse(use Use) { g.lastUse = g.lastUse.Latest(use) }

// Latest returns the later time and the larger number of both uses.
func (u Use) Latest(other Use) Use {
	if other.At.After(u.At) {
		u.At = other.At
	}
	u.Access = max(u.Access, other.Access)
	return u
}

// minResourceSecret is the minimum length of ProtectedServer.Secret, in characters.
const minResourceSecret = 32

// checkResourceSecrets refuses secrets that can be guessed, and those with characters that a client
// has to encode in a Basic header, because not every client does.
func (c Config) checkResourceSecrets() (found mistakes) {
	var taken []string
	isUnsafe := func(r rune) bool { return strings.ContainsRune(":%+", r) || r <= ' ' || r > unicode.MaxASCII }
	for _, server := range c.servers() {
		secret := server.Secret
		if secret == "" {
			continue
		}
		switch {
		case len(secret) < minResourceSecret:
			found.add("Secret", "of %s has %d characters: give %d random ones or more",
				uri.WithoutUser(server.Resource), len(secret), minResourceSecret)
		case strings.ContainsFunc(secret, isUnsafe):
			found.add("Secret", "of %s has a colon, a percent sign, a plus sign, white space or a character outside "+
				"ASCII: use letters and digits", uri.WithoutUser(server.Resource))
		case slices.Contains(taken, secret):
			found.add("Secret", "of %s is that of another server: each needs its own, or one could ask about the "+
				"tokens of the other", uri.WithoutUser(server.Resource))
		}
		taken = append(taken, secret)
	}
	return found
}

// Introspects reports whether the server of this resource may ask about tokens.
func (r ProtectedResource) Introspects() bool { return r.secret != ClientSecret{} }

// Introspects reports whether the server of any resource may ask about tokens.
func (s *Settings) Introspects() bool {
	return slices.ContainsFunc(s.Resources, ProtectedResource.Introspects)
}

// CheckResourceServer returns the resource of an MCP server that asks about a token, and proves
// itself with the URI of the resource and its secret. It refuses others with InvalidClient.
func (s *Settings) CheckResourceServer(name string, secret ClientSecret) (Resource, error) {
	i := s.index(NewResource(name))
	if i < 0 || !s.Resources[i].Introspects() {
		return Resource{}, RefuseClient(errors.New("no MCP server of this name may introspect tokens"))
	}
	known := s.Resources[i]
	right, presented := sha256.Sum256([]byte(known.secret.Reveal())), sha256.Sum256([]byte(secret.Reveal()))
	if subtle.ConstantTimeCompare(right[:], presented[:]) == 0 {
		return Resource{}, RefuseClient(errors.New("the secret of " + known.Resource.String() + " is wrong"))
	}
	return known.Resource, nil
}
