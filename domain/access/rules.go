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
	rules    []rule
	readings func(name string) []string
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

// pattern is a pattern as it was written, and in the forms of Vocabulary.
type pattern struct {
	exact               string
	complete, shortened []string
}

// Permit reports whether the caller may see and use a name. A deny rule matches a name if it
// matches one of its readings. An allow rule has to match the exact name and all its readings,
// because each could be what an MCP server reads.
func (r Rules) Permit(caller oauth.Caller, name string) bool {
	if len(r.rules) == 0 {
		return true
	}
	decides := r.indexFor(caller, name)
	return decides >= 0 && r.rules[decides].allows
}

// indexFor returns the index of the rule that decides about a name, -1 for none.
func (r Rules) indexFor(caller oauth.Caller, name string) int {
	readings := r.readings(name)
	return slices.IndexFunc(r.rules, func(one rule) bool {
		return len(readings) > 0 && one.concerns(caller) && one.matches(name, readings)
	})
}

// Empty reports whether there is no rule.
func (r Rules) Empty() bool { return len(r.rules) == 0 }

func (r rule) concerns(caller oauth.Caller) bool {
	return r.forAll || slices.ContainsFunc(r.roles, func(role string) bool {
		return slices.Contains(caller.Roles, role)
	}) ||
		slices.ContainsFunc(r.scopes, caller.Scopes.Has)
}

func (r rule) matches(name string, readings []string) bool {
	if r.allows {
		return slices.ContainsFunc(r.patterns, func(p pattern) bool {
			return globs(p.exact, name) && p.allows(readings)
		})
	}
	return r.meets(name, readings)
}

// meets reports whether a pattern matches the name or one of its readings.
func (r rule) meets(name string, readings []string) bool {
	return slices.ContainsFunc(r.patterns, func(p pattern) bool { return globs(p.exact, name) || p.denies(readings) })
}

// allows reports whether a form matches each of the readings.
func (p pattern) allows(readings []string) bool {
	return !slices.ContainsFunc(readings, func(reading string) bool {
		return !globAny(p.complete, reading) && !globAny(p.shortened, reading)
	})
}

// denies reports whether the pattern matches one of the readings, also without a slash at its end,
// which many servers ignore.
func (p pattern) denies(readings []string) bool {
	return slices.ContainsFunc(readings, func(reading string) bool {
		return globs(p.exact, reading) || globAny(p.complete, reading) ||
			globAny(p.complete, strings.TrimSuffix(reading, "/"))
	})
}

func globAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return globs(pattern, name) })
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
