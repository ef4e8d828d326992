package jsonrpc

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// methods are those of every revision of MCP, by their folded spelling.
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

// respelledMethod returns the method of MCP for which an upstream may take another one, if it ignores case, width, or what cannot be
// seen. It returns "" for the exact spelling and for methods that are not MCP's.
func respelledMethod(method string) string {
	folded := method
	if !isFolded(method) {
		folded = fold(visible(method))
	}
	if exact := methods[folded]; exact != method {
		return exact
	}
	return ""
}

// FoldToolName returns what the spellings have in common that an MCP server may take for one tool: it may ignore space at both ends,
// case, and the width of letters. It is for demanding scopes only: a fold that is too broad asks for a scope too many, and opens nothing.
func FoldToolName(name string) string {
	if isFolded(name) {
		return name
	}
	return fold(trimmed(name))
}

// isFolded reports that a name is ASCII without capitals and space, as most names are.
func isFolded(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// fold applies NFKC besides case folding, because some frameworks normalize names and NFKC only ever joins spellings.
func fold(name string) string {
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
}

// trimmed removes at both ends what any language's trim removes: white space, control and format characters.
func trimmed(name string) string { return strings.TrimFunc(name, isInvisible) }

// visible removes the same everywhere: no method of MCP has any of it.
func visible(method string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, method)
}

func isInvisible(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }

// spellings adds to the names of tools those that an upstream may read instead: without space at the ends, or only up to a NUL. It is for
// ToolScopes functions, which compare exactly.
func spellings(tools []string) []string {
	all := tools
	for _, name := range tools {
		begins, _, _ := strings.Cut(name, "\x00")
		for _, other := range []string{trimmed(name), begins, trimmed(begins)} {
			if other != name {
				all = append(all, other)
			}
		}
	}
	return all
}

// deciding are the members that say what a message does. Some decoders take them in any case.
var deciding = [][]byte{[]byte("jsonrpc"), []byte("id"), []byte("method"), []byte("params"), []byte("name"), []byte("_meta")}

// respelled returns the deciding member for which some decoders take a name: they ignore its case, or hyphens and underscores. Others let
// objects inherit from __proto__. It returns "" for any other name.
func respelled(name []byte) string {
	if slices.ContainsFunc(deciding, func(exact []byte) bool { return bytes.Equal(name, exact) }) {
		return ""
	}
	if string(name) == "__proto__" {
		return "a prototype"
	}
	if !isFolded(string(name)) {
		name = []byte(FoldToolName(string(name)))
	}
	words := joined(name)
	if i := slices.IndexFunc(deciding, func(exact []byte) bool { return bytes.EqualFold(name, exact) || bytes.EqualFold(words, exact) }); i >= 0 {
		return string(deciding[i])
	}
	return ""
}

// joined is a name without what joins its words.
func joined(name []byte) []byte {
	if bytes.IndexByte(name, '-') < 0 && bytes.IndexByte(name, '_') < 0 {
		return name
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(name, []byte("-"), nil), []byte("_"), nil)
}
