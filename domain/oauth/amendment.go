package oauth

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pasteport/pasteport/domain/credential"
)

// Amendment names a connection or narrows it. It never widens one: a scope that the connection does
// not have, and an end after its own, change nothing.
type Amendment struct {
	Label  *string       // the person's own name for it, of at most 60 characters; nil keeps it
	Scopes *Scopes       // those that stay, with what they imply; nil keeps all
	EndsIn time.Duration // until the latest end; 0 keeps it
}

const maxLabelLength = 60 // characters

// amend refuses with NothingLeft an amendment that ends the connection, and with InvalidRequest a
// label that cannot be shown.
func (c *consent) amend(a Amendment, settings *Settings) error {
	left, label := c.scopes, c.label
	if a.Scopes != nil {
		left = settings.ScopesOf(c.resource).Expand(*a.Scopes).With(OfflineAccess).Intersect(c.scopes)
	}
	if a.Label != nil {
		label = strings.Join(strings.Fields(*a.Label), " ")
	}
	switch {
	case left.Without(OfflineAccess).Empty() || a.EndsIn < 0:
		return Refuse(NothingLeft, "J22", "nothing would be left of the connection: end it instead")
	case !isLabel(label):
		return Refuse(InvalidRequest, "J21", "the name has more than 60 characters, or some that cannot be shown")
	}
	c.scopes, c.label = left, label
	return nil
}

func isLabel(text string) bool {
	return utf8.RuneCountInString(text) <= maxLabelLength && !strings.ContainsFunc(text, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r) || credential.IsInvisible(r)
	})
}

// latest returns the earlier of the current end and that of the amendment.
func (a Amendment) latest(end, now time.Time) time.Time {
	if a.EndsIn == 0 {
		return end
	}
	return earlier(now.Add(a.EndsIn).Truncate(time.Millisecond), end)
}

// Amend implements Authorization.
func (c *AuthorizationCode) Amend(a Amendment, settings *Settings, now time.Time) (amended bool, err error) {
	if !c.active(now) {
		return false, nil
	}
	if err := c.amend(a, settings); err != nil {
		return false, err
	}
	c.grantEnd = a.latest(c.grantEnd, now)
	c.expiresAt = earlier(c.expiresAt, c.grantEnd)
	return true, nil
}

// Amend implements Authorization. The access tokens that the client has lose the same scopes, and
// end with the grant.
func (g *AccessGrant) Amend(a Amendment, settings *Settings, now time.Time) (amended bool, err error) {
	if !g.active(now) {
		return false, nil
	}
	if err := g.amend(a, settings); err != nil {
		return false, err
	}
	g.expiresAt = a.latest(g.expiresAt, now)
	g.idleExpiresAt = earlier(g.idleExpiresAt, g.expiresAt)
	for i := range g.access {
		g.access[i].expiresAt = earlier(g.access[i].expiresAt, g.expiresAt)
	}
	return true, nil
}

// Amend amends the one with the id, and returns it as its person sees it; nil if it is not active.
func (a Authorizations) Amend(id string, by Amendment, settings *Settings, now time.Time) (*Connection, error) {
	for authorization := range a.All() {
		if authorization.ID() != id {
			continue
		}
		amended, err := authorization.Amend(by, settings, now)
		if err != nil {
			return nil, err
		}
		if amended {
			shown, _ := settings.Connection(authorization, now)
			return &shown, nil
		}
	}
	return nil, nil
}
