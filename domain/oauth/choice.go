package oauth

import (
	"slices"
	"time"
)

// Choice is what a person leaves to the client on the consent page. It can only narrow the request.
// A nil Choice leaves everything.
type Choice struct {
	Scopes   Scopes        // the first one of the request is granted without it
	Lifetime time.Duration // of the grant, one of Settings.GrantChoices; 0 for the longest
}

// text distinguishes choices.
func (c *Choice) text() string {
	if c == nil {
		return ""
	}
	return "\x00" + c.Scopes.String() + "\x00" + c.Lifetime.String()
}

// CheckChoice refuses, with InvalidRequest, a choice that the page did not offer.
func (r *AuthorizationRequest) CheckChoice(by *Choice) error {
	switch {
	case by == nil:
	case !r.Scopes.Contains(by.Scopes):
		return Refuse(InvalidRequest, "B25", "the form allows something that the app did not ask for")
	case by.Lifetime != 0 && !slices.Contains(r.settings.GrantChoices, by.Lifetime):
		return Refuse(InvalidRequest, "B25", "the form has a time that the page did not offer")
	}
	return nil
}

// Chosen returns the scopes that a choice leaves. A scope that a chosen one implies stays, because
// the client could use it anyway.
func (r *AuthorizationRequest) Chosen(by *Choice) Scopes {
	if by == nil {
		return r.Scopes
	}
	chosen := by.Scopes
	catalogue := r.settings.ScopesOf(r.Resource)
	if described := catalogue.Describe(r.Scopes); len(described) > 0 {
		chosen = chosen.With(described[0].Name)
	}
	return catalogue.Expand(chosen).Intersect(r.Scopes)
}

// LongestGrant returns how long a grant may live if the person chooses no shorter time.
func (s *Settings) LongestGrant() time.Duration {
	if len(s.GrantChoices) > 0 {
		return s.GrantChoices[0]
	}
	return s.GrantTTL
}
