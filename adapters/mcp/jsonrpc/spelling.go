package jsonrpc

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// methods are the methods of all revisions of MCP, by their folded name.
var methods = func() map[string]string {
	exact := map[string]string{}
	for method := range strings.FieldsSeq(`
		initialize ping server/discover
		tools/list tools/call
		resources/list resources/templates/list resources/read resources/subscribe resources/unsubscribe
		prompts/list prompts/get
		completion/complete logging/setLevel subscriptions/listen
		roots/list sampling/createMessage elicitation/create
		tasks/get tasks/list tasks/result tasks/cancel tasks/update
		notifications/initialized notifications/cancelled notifications/progress notifications/message
		notifications/tools/list_changed notifications/prompts/list_changed notifications/resources/list_changed
		notifications/resources/updated notifications/roots/list_changed notifications/elicitation/complete
		notifications/subscriptions/acknowledged notifications/tasks/status`) {
		exact[fold(method)] = method
	}
	return exact
}()

// variantOfMethod returns the method that an upstream would read if it ignores case, width or
// invisible characters: a method of MCP, or another one that names tools, prompts or resources. It
// returns "" for an exact method and for any other one.
func variantOfMethod(method string) string {
	folded := fold(withoutInvisible(method))
	if exact := methods[folded]; exact != "" {
		if exact == method {
			return ""
		}
		return exact
	}
	for _, prefix := range []string{toolMethods, promptMethods, resourceMethods} {
		if strings.HasPrefix(folded, prefix) && !strings.HasPrefix(method, prefix) {
			return folded
		}
	}
	return ""
}

// FoldToolName is Fold for the name of a tool or prompt. It returns a name of more than MaxName
// bytes unchanged, because Peek and ReadStrict refuse it.
func FoldToolName(name string) string {
	if Length(name, MaxName) > MaxName {
		return name
	}
	return Fold(name)
}

// Fold returns a name without space at both ends, in lower case and in narrow letters, because an
// MCP server may ignore these differences. Use it only to require scopes or to deny: if it folds
// too much, a call needs one more scope. The caller limits the length.
func Fold(name string) string {
	return fold(trimInvisible(name))
}

// fold applies case folding and NFKC, because some frameworks normalize names.
func fold(name string) string {
	if isFolded(name) {
		return name
	}
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
}

// isFolded reports whether a name is ASCII without capitals, as most names are. Folding takes long.
func isFolded(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || 'A' <= r && r <= 'Z' })
}

// trimInvisible removes all characters at both ends that the trim function of any language removes.
func trimInvisible(name string) string { return strings.TrimFunc(name, isInvisible) }

func withoutInvisible(method string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, method)
}

// isInvisible reports whether a character is white space, a control or a format character.
func isInvisible(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }

// withVariants adds the names that an upstream may read instead: without space at the ends, or only
// up to a NUL. ToolScopes functions compare exactly.
func withVariants(tools []string) []string {
	all := tools
	for _, name := range tools {
		beforeNUL, _, _ := strings.Cut(name, "\x00")
		for _, other := range []string{trimInvisible(name), beforeNUL, trimInvisible(beforeNUL)} {
			if other != name {
				all = append(all, other)
			}
		}
	}
	return all
}

// significant are the member names that determine the meaning of a message.
var significant = membersOf("jsonrpc", "id", "method", "params", "name", "arguments", "_meta")

// referring are the other members of params that can name a prompt or a resource.
var referring = membersOf("uri", "ref", "notifications", "resourceSubscriptions")

// variantOfMember returns the significant member that a decoder would read if it ignores case,
// hyphens or underscores. It also returns a text for __proto__, which sets the prototype in
// JavaScript. It returns "" for an exact significant member and for any other name.
func variantOfMember(name string) string {
	if name == "__proto__" {
		return "a prototype"
	}
	return variantOf(name, significant)
}

// variantOf returns the one of some members of which a name is another spelling, "" for none and
// for an exact name.
func variantOf(name string, known []member) string {
	if slices.ContainsFunc(known, func(m member) bool { return m.exact == name }) {
		return ""
	}
	read := readMember(name)
	if i := slices.IndexFunc(known, read.isVariantOf); i >= 0 {
		return known[i].exact
	}
	return ""
}
