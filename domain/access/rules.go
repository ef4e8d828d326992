// Package access decides which tools, prompts and resources of an MCP server a caller may see and use. Parse reads Rules, an ordered list: the first
// rule that matches the name and the caller decides, and a name without a rule is denied (U26).
package access

import (
	"path"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Rules decide about the names of one kind: tools, prompts or resources. Empty Rules allow every name.
type Rules struct {
	rules []rule
	fold  func(name string) string
}

// rule allows or denies the names that one of its patterns matches, to the callers with one of its roles or scopes.
type rule struct {
	allows   bool
	patterns []pattern
	forAll   bool
	roles    []string
	scopes   []string
}

// pattern is a pattern as it was written, and with its letters folded.
type pattern struct{ exact, folded string }

// Permit reports whether the caller may see and use a name. A deny rule matches each spelling of a name, and an allow rule only the exact one, because
// an MCP server may take other spellings for the same name (U11).
func (r Rules) Permit(caller oauth.Caller, name string) bool {
	if len(r.rules) == 0 {
		return true
	}
	folded := r.fold(name)
	for _, rule := range r.rules {
		if rule.concerns(caller) && rule.matches(name, folded) {
			return rule.allows
		}
	}
	return false
}

// Empty reports whether there is no rule.
func (r Rules) Empty() bool { return len(r.rules) == 0 }

func (r rule) concerns(caller oauth.Caller) bool {
	return r.forAll || slices.ContainsFunc(r.roles, func(role string) bool { return slices.Contains(caller.Roles, role) }) ||
		slices.ContainsFunc(r.scopes, caller.Scopes.Has)
}

func (r rule) matches(name, folded string) bool {
	return slices.ContainsFunc(r.patterns, func(p pattern) bool {
		if r.allows {
			return globs(p.exact, name) && globs(p.folded, folded)
		}
		return globs(p.exact, name) || globs(p.folded, folded) || globs(p.exact, folded)
	})
}

// globs is path.Match, but a slash has no special meaning, because names and URIs contain slashes.
func globs(pattern, name string) bool {
	if pattern == everything {
		return true
	}
	matched, err := path.Match(withoutSlashes.Replace(pattern), withoutSlashes.Replace(name))
	return matched && err == nil
}

// everything is the pattern that matches every name.
const everything = "*"

var withoutSlashes = strings.NewReplacer("/", "\x00")
