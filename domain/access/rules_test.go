package access

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestAccess(t *testing.T) {
	suite.Run(t, "Who may use which names")
}

func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// known has two scopes, of which write contains read. Its readings ignore case and space at the
// ends, and also what follows a question mark.
var known = Vocabulary{
	Readings: func(name string) []string {
		folded := fold(name)
		if strings.Contains(name, "\x00") {
			return nil
		}
		if before, _, found := strings.Cut(folded, "?"); found {
			return []string{folded, before}
		}
		return []string{folded}
	},
	Forms: func(pattern string) (complete, shortened []string) {
		if strings.Contains(pattern, "//") {
			return nil, nil
		}
		before, _, _ := strings.Cut(fold(pattern), `\?`)
		return []string{fold(pattern)}, []string{before}
	},
	Roles: true,
	Scopes: func(name string) []string {
		return map[string][]string{"read": {"read", "write"}, "write": {"write"}}[name]
	},
}

func parsed(lines ...string) Rules {
	GinkgoHelper()
	rules, mistakes := Parse(lines, known)
	Expect(mistakes).To(BeEmpty())
	return rules
}

var (
	ada = oauth.Caller{Roles: []string{"staff", "admin"}, Scopes: oauth.NewScopes("write")}
	bob = oauth.Caller{Roles: []string{"guest"}, Scopes: oauth.NewScopes("read")}
	eve = oauth.Caller{}
)

var _ = Describe("Deciding who may use a name", Label("U26"), func() {
	DescribeTable("permits or denies it:", func(list string, caller oauth.Caller, name string, permitted bool) {
		Expect(parsed(strings.Split(list, "; ")...).Permit(caller, name)).To(Equal(permitted))
	},
		Entry("an allowed name", "allow read_*", eve, "read_page", true),
		Entry("a name without a rule", "allow read_*", eve, "write_page", false),
		Entry("a list of patterns", "allow read_* list_*", eve, "list_pages", true),
		Entry("a denied name before a rule for all", "deny delete_*; allow *", eve, "delete_all", false),
		Entry("another name before a rule for all", "deny delete_*; allow *", eve, "read", true),
		Entry("the first of two rules that match", "allow delete_draft; deny delete_*; allow *", eve,
			"delete_draft", true),
		Entry("a rule for a role of the caller", "allow delete_* for role:admin; deny delete_*; allow *", ada,
			"delete_all", true),
		Entry("a rule for a role of another", "allow delete_* for role:admin; deny delete_*; allow *", bob,
			"delete_all", false),
		Entry("a denial for a role", "deny delete_* for role:guest; allow *", bob, "delete_all", false),
		Entry("a denial for a role of another", "deny delete_* for role:guest; allow *", ada, "delete_all", true),
		Entry("any of several callers", "allow * for role:admin scope:read", bob, "x", true),
		Entry("a scope that contains the one of the rule", "allow * for scope:read", ada, "x", true),
		Entry("a scope that the one of the rule contains", "allow * for scope:write", bob, "x", false),
		Entry("a caller without roles and scopes", "allow * for role:admin scope:read", eve, "x", false),
		Entry("a role in another case", "allow * for role:Admin", ada, "x", false),
		Entry("a slash", "allow file:/docs/*", eve, "file:/docs/a/b", true),
		Entry("a set and a single character", "allow item?[0-9]", eve, "item_7", true),
		Entry("a literal character", `allow a\*`, eve, "ab", false),
		Entry("another case of a denied name", "deny delete_*; allow *", eve, "Delete_ALL", false),
		Entry("another case of a denied pattern", "deny DELETE_*; allow *", eve, "delete_all", false),
		Entry("space before a denied name", "deny delete_*; allow *", eve, " delete_all", false),
		Entry("another case of an allowed name", "allow read", eve, "Read", false),
		Entry("another case between an exception and its rule", "allow delete_draft; deny delete_*; allow *", eve,
			"Delete_Draft", false),
		Entry("an allowed name in capitals", "allow Read_*", eve, "Read_X", true),
		Entry("a name that matches only with its space", "allow del?", eve, "del ", false),
		Entry("an empty name", "allow ?*", eve, "", false),
		Entry("a denied name with more than servers read", "deny secret; allow *", eve, "SECRET?x", false),
		Entry("a denied name with a slash at its end", "deny secret; allow *", eve, "secret/", false),
		Entry("an allowed end that servers may ignore", "allow *.txt", eve, "secret?.txt", false),
		Entry("an allowed name with anything at its end", "allow read_*", eve, "read_page?x", true),
		Entry("an allowed query", `allow read_*\?x=*`, eve, "read_page?x=1", true),
		Entry("another query", `allow read_*\?x=*`, eve, "read_page?y=1", false),
		Entry("a name that servers read differently", "allow *", eve, "a\x00b", false),
	)

	It("permits everything without rules", func() {
		Expect(parsed().Permit(eve, "x")).To(BeTrue())
		Expect(parsed().Empty()).To(BeTrue())
	})
})

var _ = Describe("Reading rules", Label("U28"), func() {
	DescribeTable("reports a mistake with the number of the rule and a remedy:", func(list, mistake string) {
		_, mistakes := Parse(strings.Split(list, "; "), known)
		Expect(fmt.Sprint(mistakes)).To(ContainSubstring(mistake))
		Expect(mistakes).To(HaveLen(1))
	},
		Entry("another word", "allow a; permit b",
			`number 2: it does not begin with allow or deny: write a rule such as "allow read_*"`),
		Entry("nothing", "allow a; ", "number 2: it does not begin with allow or deny"),
		Entry("no pattern", "allow", "number 1: it has no pattern: write one"),
		Entry("no pattern before for", "deny for role:guest", "number 1: it has no pattern"),
		Entry("a pattern that does not end", "allow [a-",
			`number 1: "[a-" is not a pattern: in patterns, * and ? match characters`),
		Entry("a pattern that matches nothing", "deny a//b; allow *",
			`number 1: "a//b" matches no name that a caller may use: write it without dot segments`),
		Entry("no caller", "allow * for", "number 1: nothing follows for: write role:NAME or scope:NAME"),
		Entry("a caller of another kind", "allow * for admin",
			`number 1: "admin" is not a caller: after for, write role:NAME`),
		Entry("a role without a name", "allow * for role:", `"role:" is not a caller`),
		Entry("an unknown scope", "allow * for scope:reed",
			`number 1: "reed" is not a scope of this server: add it to scopes`),
		Entry("a rule after one for everything", "allow *; deny delete_*",
			"number 2: it has no effect, because earlier rules decide about all its names"),
		Entry("a rule for one role after one for everything", "deny *; allow a for role:admin",
			"number 2: it has no effect"),
		Entry("a number of calls, as rules could have once", "allow a for role:x at 5/min; allow *",
			`number 1: "at" is not a caller`),
		Entry("a repeated rule", "allow a b; allow b a", "number 2: it has no effect"),
		Entry("rules that only deny", "deny delete_*",
			`no rule allows a name, and a name without a rule is denied: add "allow *"`),
	)

	DescribeTable("accepts", func(list string) {
		_, mistakes := Parse(strings.Split(list, "; "), known)
		Expect(mistakes).To(BeEmpty())
	},
		Entry("a rule after one for everything and one role", "allow * for role:admin; allow a"),
		Entry("a list that denies everything", "deny *"),
		Entry("the opposite for another name", "allow a; deny b; allow *"),
		Entry("space between words", "  allow   a\tb  for   role:x "),
		Entry("a role with a colon", "allow a for role:urn:x"),
		Entry("a tool whose name is at", "allow at; deny x at; allow *"),
	)

	It("reports a role if callers have none", func() {
		_, mistakes := Parse([]string{"allow * for role:admin"},
			Vocabulary{Readings: known.Readings, Forms: known.Forms, Scopes: known.Scopes})
		Expect(mistakes).
			To(ConsistOf(MatchError(
				ContainSubstring(`"role:admin" is a role, but the verifier names no roles: choose another verifier`))))
	})
})

// FuzzRules checks that no spelling of a name evades a rule: a name that is permitted is permitted
// in the form that its server may read instead.
func FuzzRules(f *testing.F) {
	f.Fuzz(func(t *testing.T, list, name string) {
		rules, mistakes := Parse(strings.Split(list, "\n"), known)
		if len(mistakes) > 0 {
			for _, mistake := range mistakes {
				if mistake.Error() == "" {
					t.Fatal("a mistake has no text")
				}
			}
			return
		}
		for _, caller := range []oauth.Caller{ada, bob, eve} {
			if !rules.Permit(caller, name) {
				continue
			}
			for _, rule := range rules.rules { // the first that concerns any spelling has to allow all of them
				denied := !rule.allows && rule.concerns(caller) &&
					(rule.matches(name, []string{name}) || rule.matches(fold(name), known.Readings(name)))
				if denied {
					t.Fatalf("%q permits %q although %+v", list, name, rule)
				}
				if rule.allows && rule.concerns(caller) && rule.matches(name, known.Readings(name)) {
					break
				}
			}
		}
	})
}
