package oauth

import (
	"errors"
	"slices"
	"strings"
)

// OfflineAccess is the scope that requests a refresh token.
const OfflineAccess = "offline_access"

const maxScopeLength = 1024

// Scopes is a sorted set of scope values; the zero value is the empty set.
type Scopes struct{ values []string }

// ParseScopes reads a space-separated scope parameter (RFC 6749 §3.3). It refuses characters
// outside the grammar with InvalidScope, and ignores extra spaces and duplicates.
func ParseScopes(text string) (Scopes, error) {
	if len(text) > maxScopeLength {
		return Scopes{}, Refuse(InvalidScope, "A23", "the scope parameter is too long")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }) {
		return Scopes{}, Refuse(InvalidScope, "A23", "the scope parameter holds a character that scopes cannot have")
	}
	// Clone, so that a stored scope does not keep the request in memory.
	return setOf(strings.Fields(strings.Clone(text))), nil
}

// NewScopes returns the set of the given values.
func NewScopes(values ...string) Scopes { return setOf(slices.Clone(values)) }

// setOf sorts the values in place and keeps them.
func setOf(values []string) Scopes {
	slices.Sort(values)
	return Scopes{slices.Compact(values)}
}

// String returns the values sorted and separated by spaces.
func (s Scopes) String() string { return strings.Join(s.values, " ") }

// Values returns a copy of the sorted values.
func (s Scopes) Values() []string { return slices.Clone(s.values) }

// Empty reports whether the set has no value.
func (s Scopes) Empty() bool { return len(s.values) == 0 }

// Has reports whether the set contains the value. It ignores what other values imply: see
// ScopeCatalogue.Expand.
func (s Scopes) Has(value string) bool { return slices.Contains(s.values, value) }

// Contains reports whether every value of other is in s.
func (s Scopes) Contains(other Scopes) bool {
	return !slices.ContainsFunc(other.values, func(v string) bool { return !s.Has(v) })
}

// With returns the set extended by the values.
func (s Scopes) With(values ...string) Scopes {
	return setOf(append(slices.Clone(s.values), values...))
}

// Without returns the set without the value.
func (s Scopes) Without(value string) Scopes {
	return Scopes{slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return v == value })}
}

// Intersect returns the values that are in both sets.
func (s Scopes) Intersect(other Scopes) Scopes {
	return Scopes{slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return !other.Has(v) })}
}

// Scope is a scope value with its description for people and the narrower ones that it implies.
type Scope struct {
	Name        string
	Description string // a sentence for the consent page
	Implies     []string
}

// UnmarshalText reads "name implied-name… = description". Spaces separate names, because no scope
// contains one (RFC 6749 §3.3).
func (s *Scope) UnmarshalText(text []byte) error {
	names, description, _ := strings.Cut(string(text), " = ")
	words := strings.Fields(names)
	if len(words) == 0 {
		return errors.New("the scope has no name")
	}
	*s = Scope{Name: words[0], Implies: words[1:], Description: strings.TrimSpace(description)}
	return nil
}

// MarshalText is the reverse of UnmarshalText.
func (s Scope) MarshalText() ([]byte, error) {
	line := strings.Join(append([]string{s.Name}, s.Implies...), " ")
	if s.Description != "" {
		line += " = " + s.Description
	}
	return []byte(line), nil
}

// ScopeCatalogue holds the scopes that this server can grant.
type ScopeCatalogue struct {
	known    []Scope
	defaults Scopes
}

// Known returns the names of all scopes, without OfflineAccess.
func (c ScopeCatalogue) Known() Scopes {
	names := make([]string, 0, len(c.known))
	for _, scope := range c.known {
		names = append(names, scope.Name)
	}
	return NewScopes(names...).Without(OfflineAccess)
}

// Defaults returns the scopes of a request that has no scope parameter.
func (c ScopeCatalogue) Defaults() Scopes { return c.defaults }

// Describe returns the granted scopes with their descriptions, in the order of the catalogue.
func (c ScopeCatalogue) Describe(granted Scopes) []Scope {
	return slices.DeleteFunc(slices.Clone(c.known), func(s Scope) bool { return !granted.Has(s.Name) })
}

// Expand adds the implied scopes, also indirectly implied ones.
func (c ScopeCatalogue) Expand(granted Scopes) Scopes {
	for {
		wider := granted
		for _, scope := range c.known {
			if granted.Has(scope.Name) {
				wider = wider.With(scope.Implies...)
			}
		}
		if len(wider.values) == len(granted.values) {
			return granted
		}
		granted = wider
	}
}

// openIDScopes are the scopes of OpenID Connect (Core §5.4), which some clients always request.
var openIDScopes = NewScopes("openid", "profile", "email", "address", "phone")

// resolve returns the requested scopes that are known. If those are none, or OfflineAccess alone,
// it adds the defaults. It refuses with InvalidScope when none of the requested scopes is known,
// unless all are scopes of OpenID.
func (c ScopeCatalogue) resolve(text string) (Scopes, error) {
	requested, err := ParseScopes(text)
	if err != nil {
		return Scopes{}, err
	}
	if requested.Empty() {
		return c.defaults, nil
	}
	known := requested.Intersect(c.Known().With(OfflineAccess))
	switch {
	case !known.Without(OfflineAccess).Empty():
		return known, nil
	case known.Empty() && !openIDScopes.Contains(requested):
		return Scopes{}, Refuse(InvalidScope, "A25", "none of the requested scopes is known here")
	}
	return c.defaults.With(known.Values()...), nil
}
