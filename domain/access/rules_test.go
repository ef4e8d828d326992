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

// known has two scopes, of which write contains read.
var known = Vocabulary{
	Fold:  FoldURI,
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
		Entry("a denied name before a rule for all", "deny delete_*; allow *", eve, "delete_all", false),
		Entry("the first of two rules that match", "allow delete_draft; deny delete_*; allow *", eve,
			"delete_draft", true),
		Entry("a rule for a role of the caller", "allow delete_* for role:admin; deny delete_*; allow *", ada,
			"delete_all", true),
		Entry("a rule for a role of another", "allow delete_* for role:admin; deny delete_*; allow *", bob,
			"delete_all", false),
		Entry("a denial for a role", "deny delete_* for role:guest; allow *", bob, "delete_all", false),
		Entry("a scope that contains the one of the rule", "allow * for scope:read", ada, "x", true),
		Entry("a scope that the one of the rule contains", "allow * for scope:write", bob, "x", false),
		Entry("a caller without roles and scopes", "allow * for role:admin scope:read", eve, "x", false),
		Entry("a role in another case", "allow * for role:Admin", ada, "x", false),
		Entry("a slash", "allow file:/docs/*", eve, "file:/docs/a/b", true),
		Entry("a set and a single character", "allow item?[0-9]", eve, "item_7", true),
		Entry("a literal character", `allow a\*`, eve, "ab", false),
		Entry("another case of a denied name", "deny delete_*; allow *", eve, "Delete_ALL", false),
		Entry("space before a denied name", "deny delete_*; allow *", eve, " delete_all", false),
		Entry("another case of an allowed name", "allow read", eve, "Read", false),
		Entry("another spelling of an allowed name that is then denied", "allow a:b; deny a:b; allow *", eve,
			"a:b?x", false),
		Entry("another case between an exception and its rule", "allow delete_draft; deny delete_*; allow *", eve,
			"Delete_Draft", false),
		Entry("an allowed name in capitals", "allow Read_*", eve, "Read_X", true),
		Entry("an empty name", "allow ?*", eve, "", false),
		Entry("a denied name with more than servers read", "deny secret; allow *", eve, "SECRET?x", false),
		Entry("a denied name with a slash at its end", "deny secret; allow *", eve, "secret/", false),
		Entry("another end of a denied name", "deny a:b; allow *", eve, "a:b#c", false),
		Entry("an allowed name with anything at its end", "allow read_*", eve, "read_page?x", true),
		Entry("an allowed query", `allow read_*\?x=*`, eve, "read_page?x=1", true),
		Entry("another query", `allow read_*\?x=*`, eve, "read_page?y=1", false),
		Entry("a name that servers read differently", "allow *", eve, "a\x00b", false),
		Entry("a file without a host", "deny file:///etc/*; allow *", eve, "FILE:/etc/x", false),
		Entry("a file of this computer", "deny file:///etc/*; allow *", eve, "file://localhost/etc/x", false),
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
		Entry("nothing", "allow a; ", "number 2: it does not begin with allow or deny"),
		Entry("no pattern", "allow", "number 1: it has no pattern: write one"),
		Entry("a pattern that matches nothing", "deny a:%2f*; allow *",
			`number 1: "a:%2f*" matches no name that a caller may use`),
		Entry("a denied file without a host", "deny file:/etc/*; allow *",
			`"file:/etc/*" denies nothing, because a URI that begins with "file:/etc/" is compared as one that `+
				`begins with "file:///etc/": write that`),
		Entry("a denied host that is left out", "deny file://localhost/x; allow *", `begins with "file:///x"`),
		Entry("a denied path without a host", "deny note:/secret; allow *", `begins with "note:///secret"`),
		Entry("no caller", "allow * for", "number 1: nothing follows for: write role:NAME or scope:NAME"),
		Entry("a caller of another kind", "allow * for admin",
			`number 1: "admin" is not a caller: after for, write role:NAME`),
		Entry("a rule after one for everything", "allow *; deny delete_*",
			"number 2: it has no effect, because earlier rules decide about all its names"),
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
		Entry("wildcards in the place of slashes, hosts and ports",
			"deny file:*; deny file://*; deny https:*; deny https://*:*/x; deny https://*.example.com:*/x; "+
				"deny https://h.example:[0-9]*/x; deny *a*b*c*d*e*; allow *"),
	)
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
				folded, _ := FoldURI(name)
				if !rule.allows && rule.concerns(caller) &&
					(rule.matches(name, folded) || rule.matches(folded, folded)) {
					t.Fatalf("%q permits %q although %+v", list, name, rule)
				}
				if rule.allows && rule.concerns(caller) && rule.matches(name, folded) {
					break
				}
			}
		}
	})
}

var _ = Describe("The name that rules compare", Label("U26"), func() {
	It("is a URI in lower case", func() {
		for _, uri := range [][2]string{
			{"file:///A/b", "file:///a/b"}, {"FILE:/a/b", "file:///a/b"}, {"file://localhost/a", "file:///a"},
			{"file:///a?b#c", "file:///a?b#c"}, {"HTTPS://H.example/a", "https://h.example/a"},
			{"https://h:8443", "https://h:8443"}, {"memo:x", "memo:x"}, {"urn:isbn:123", "urn:isbn:123"},
			{"postgres://db:5432/{table}", "postgres://db:5432/{table}"}, {"Readme", "readme"},
			{"note:///{+path}{?q}", "note:///{+path}{?q}"}, {"file:///.git/...x", "file:///.git/...x"},
		} {
			folded, ok := FoldURI(uri[0])
			Expect(ok).To(BeTrue(), uri[0])
			Expect(folded).To(Equal(uri[1]))
		}
	})

	It("refuses a URI that servers may take for another one", func() {
		for _, uri := range []string{
			"", "a:" + strings.Repeat("x", maxURI), "file:///a%20b", "file:///%2e%2e/b", "file:///a%", "file:///a b",
			" file:///a", "file:///a\n", "file:///a\x00", `file:///a\b`, "file:///c|/x", "<file:///a>",
			"file:///\uff53ecret", "file:///a\u00a0b", "file:///a\x7f", "file:///a/../b", "file:///./a", "file:///a/..",
			"file:..", "file:///a/..?b", "https://h/a?/../b", "../a", "note://a/../b", "file:///a/..;x/b", "file:////a",
			"file:///a//b", "https://h//a", "note://a//b", "file://docs/{name}", "file://127.0.0.1/a",
			"file://localhost:/a", "file:///a;v=1", "file:///;a/b", "https://h/a;b", "http://127.1/x",
			"http://2130706433/x", "http://0x7f.1/x", "http://127.0.0.01/x", "notes://a:/b", "db://h:080/b",
			"local_file:///a", "git+file:///a", "netdoc:/a", "phar:///a", "https://user@h/a", "file://user@/a",
			"note://me@a/b", "url:file:///a", "jar:file:///a.jar!/b", "view-source:http://h/a", "a:b://c", "::file:/a",
			"https:h/a", "https:/h/a", "https:///h/a", "HTTP:h", "file:a", "https://h:443/a", "http://h:80",
			"https://h./a", "https://[::1]/a",
		} {
			_, ok := FoldURI(uri)
			Expect(ok).To(BeFalse(), uri)
		}
	})

	It("is the name of a tool with the characters that MCP recommends", func() {
		for name, is := range map[string]bool{
			"Get_user.v2/a-b":        true,
			"":                       false,
			"a b":                    false,
			"\uff41":                 false,
			"a\n":                    false,
			strings.Repeat("a", 128): true,
			strings.Repeat("a", 129): false,
		} {
			folded, ok := FoldName(name)
			Expect(ok).To(Equal(is), name)
			Expect(folded).To(Equal(strings.ToLower(name)))
		}
	})
})
