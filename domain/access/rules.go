// Package access decides which tools, prompts and resources of an MCP server a caller may see and
// use. Parse reads Rules, an ordered list: the first rule that matches the name and the caller
// decides, and a name without a rule is denied.
package access

import (
	"path"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Rules decide about the names of one kind: tools, prompts or resources. Empty Rules allow every
// name.
type Rules struct {
	rules []rule
	fold  func(name string) (string, bool)
}

// rule allows or denies the names that one of its patterns matches, to the callers with one of its
// roles or scopes.
type rule struct {
	allows   bool
	patterns []pattern
	forAll   bool
	roles    []string
	scopes   []string
}

// pattern is a pattern as it was written, and in lower case.
type pattern struct{ exact, folded string }

// Permit reports whether the caller may see and use a name. An allow rule has to match the exact
// name. A deny rule also matches it in another case, and with a query, a fragment or a slash at its
// end, because servers may ignore those.
func (r Rules) Permit(caller oauth.Caller, name string) bool {
	if len(r.rules) == 0 {
		return true
	}
	folded, ok := r.fold(name)
	decides := slices.IndexFunc(r.rules, func(one rule) bool {
		return ok && one.concerns(caller) && one.matches(name, folded)
	})
	return decides >= 0 && r.rules[decides].allows
}

// Empty reports whether there is no rule.
func (r Rules) Empty() bool { return len(r.rules) == 0 }

func (r rule) concerns(caller oauth.Caller) bool {
	return r.forAll || slices.ContainsFunc(r.roles, func(role string) bool {
		return slices.Contains(caller.Roles, role)
	}) || slices.ContainsFunc(r.scopes, caller.Scopes.Has)
}

func (r rule) matches(name, folded string) bool {
	return slices.ContainsFunc(r.patterns, func(p pattern) bool {
		if r.allows {
			return Globs(p.exact, name)
		}
		before := WithoutQuery(folded)
		return Globs(p.folded, folded) || Globs(p.folded, before) || Globs(p.folded, strings.TrimSuffix(before, "/"))
	})
}

// Globs is path.Match, but a slash has no special meaning, because names and URIs contain slashes.
func Globs(pattern, name string) bool {
	if pattern == everything {
		return true
	}
	matched, err := path.Match(withoutSlashes.Replace(pattern), withoutSlashes.Replace(name))
	return matched && err == nil
}

// everything is the pattern that matches every name.
const everything = "*"

var withoutSlashes = strings.NewReplacer("/", "\x00")
