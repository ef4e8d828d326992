// Package access decides which tools, prompts and resources of an MCP server a caller may see and
// use. Parse reads Rules, an ordered list: the first rule that matches the name and the caller
// decides, and a name without a rule is denied.
package access

import (
	"errors"
	"fmt"
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
// name. A deny rule also matches the name in another case, and with a query, fragment or slash at
// its end, because servers may ignore those.
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
	matched, err := path.Match(withoutSlashes.Replace(pattern), withoutSlashes.Replace(name))
	return matched && err == nil
}

const everything = "*" // the pattern that matches every name

var withoutSlashes = strings.NewReplacer("/", "\x00")

// Vocabulary is what rules can refer to.
type Vocabulary struct {
	// Fold returns a name in the form in which it is compared, and false for one that no caller may
	// use; FoldName and FoldURI are two.
	Fold func(name string) (folded string, ok bool)
	// Scopes returns the scopes that contain a scope, itself included; none for an unknown one.
	Scopes func(name string) (granted []string)
	Roles  bool // callers may have roles
}

// Parse reads rules such as "allow read_*" and "deny delete_* for role:guest scope:basic". An
// error has a remedy and, if it is about one rule, the number of the rule.
func Parse(lines []string, known Vocabulary) (Rules, []error) {
	var mistakes []error
	parsed := Rules{fold: known.Fold}
	for i, line := range lines {
		one, err := parseRule(line, known)
		if err == nil && parsed.cover(one) {
			err = errors.New("it has no effect, because earlier rules decide about all its names for all callers: " +
				"move it up, or remove it")
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("number %d: %w", i+1, err))
			continue
		}
		parsed.rules = append(parsed.rules, one)
	}
	if len(mistakes) == 0 && parsed.denyAll() {
		mistakes = append(mistakes,
			errors.New(`no rule allows a name, and a name without a rule is denied: add "allow *" at the end, or `+
				`write "deny *"`))
	}
	return parsed, mistakes
}

func parseRule(line string, known Vocabulary) (rule, error) {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "allow" && words[0] != "deny" {
		return rule{}, errors.New("it does not begin with allow or deny: write a rule such as \"allow read_*\" or " +
			"\"deny delete_* for role:guest\"")
	}
	parsed := rule{allows: words[0] == "allow", forAll: true}
	names, callers := words[1:], []string(nil)
	if at := slices.Index(names, "for"); at >= 0 {
		names, callers, parsed.forAll = names[:at], names[at+1:], false
	}
	if len(names) == 0 {
		return rule{}, errors.New("it has no pattern: write one, such as read_*, or * for every name")
	}
	for _, text := range names {
		switch {
		case !IsPattern(text):
			return rule{}, fmt.Errorf("%q is not a pattern: in patterns, * and ? match characters, [ begins a set "+
				"and ] ends it, and \\ makes the next character literal", text)
		case !isPossible(text, known.Fold):
			return rule{}, fmt.Errorf("%q matches no name that a caller may use: names of tools and prompts have at "+
				"most 128 of the characters A-Z a-z 0-9 _ . / -, and URIs no percent-encoding, no dot segments, no //"+
				" in their paths and no other URI", text)
		}
		if start, folded := foldStart(text, known.Fold); folded != start && !parsed.allows {
			return rule{}, fmt.Errorf("%q denies nothing, because a URI that begins with %q is compared as one that "+
				"begins with %q: write that", text, start, folded)
		}
		parsed.patterns = append(parsed.patterns, pattern{text, strings.ToLower(text)})
	}
	if !parsed.forAll && len(callers) == 0 {
		return rule{}, errors.New("nothing follows for: write role:NAME or scope:NAME, or leave out for")
	}
	for _, caller := range callers {
		switch kind, name, _ := strings.Cut(caller, ":"); {
		case kind == "role" && name != "" && known.Roles:
			parsed.roles = append(parsed.roles, name)
		case kind == "role" && name != "":
			return rule{}, fmt.Errorf("%q is a role, but the verifier names no roles: choose another verifier, or use "+
				"scopes", caller)
		case kind == "scope" && name != "":
			granted := known.Scopes(name)
			if len(granted) == 0 {
				return rule{}, fmt.Errorf("%q is not a scope of this server: add it to scopes, or correct it", name)
			}
			parsed.scopes = append(parsed.scopes, granted...)
		default:
			return rule{}, fmt.Errorf("%q is not a caller: after for, write role:NAME or scope:NAME", caller)
		}
	}
	return parsed, nil
}

// cover reports whether earlier rules for all callers decide about each pattern of a rule. One that
// allows does not decide for a denial of its pattern, which alone extends to other spellings.
func (r Rules) cover(later rule) bool {
	isUndecided := func(p pattern) bool {
		return !slices.ContainsFunc(r.rules, func(earlier rule) bool {
			isWider := earlier.allows && !later.allows
			return earlier.forAll && (earlier.has(everything) || earlier.has(p.exact) && !isWider)
		})
	}
	return !slices.ContainsFunc(later.patterns, isUndecided)
}

// denyAll reports whether no rule allows a name, except in a list with "deny *".
func (r Rules) denyAll() bool {
	isFine := func(one rule) bool { return one.allows || one.forAll && one.has(everything) }
	return len(r.rules) > 0 && !slices.ContainsFunc(r.rules, isFine)
}

// has reports whether a pattern of the rule is written like this.
func (r rule) has(written string) bool {
	return slices.ContainsFunc(r.patterns, func(p pattern) bool { return p.exact == written })
}

// IsPattern reports whether a text is a pattern of Globs, and so is the text in lower case.
func IsPattern(text string) bool {
	_, exact := path.Match(text, "")
	_, folded := path.Match(strings.ToLower(text), "")
	return exact == nil && folded == nil
}
