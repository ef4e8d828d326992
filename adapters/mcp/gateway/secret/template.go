package secret

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/credential"
)

// template is a text with fields in braces: literal text, {token}, {base64(user:token)} or
// {urlquery(token)}. In the parentheses of a function, a word that is the name of a field stands
// for its value, and all other text is literal; quotes make a name literal, as in
// {base64(mail@example.com/'token':token)}. Two braces stand for one.
type template struct {
	text         string
	fields       []string // that may be in the text
	used         []string // of the fields
	escapedLater bool     // so that urlquery has no effect
}

var functions = map[string]func(string) string{
	"base64":   func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
	"urlquery": Escape,
}

var (
	expressions = regexp.MustCompile(`\{\{|\}\}|\{[^}]*\}|[{}]`) // of a template
	words       = regexp.MustCompile(`'[^']*'|'|[A-Za-z0-9_-]+`) // of an argument
	plain       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,20}$`)    // name that an error may repeat
)

// parseTemplate parses a template of the named fields. Its errors repeat only the names of fields
// and functions, because literal text may be a secret.
func parseTemplate(text string, fields []string, escapedLater bool) (template, error) {
	t := template{text: text, fields: fields, escapedLater: escapedLater}
	for _, found := range expressions.FindAllString(text, -1) {
		switch {
		case found == "{{", found == "}}":
		case len(found) == 1:
			return template{}, errors.New("a brace has no counterpart: write {token}, and {{ or }} for a brace itself")
		default:
			if err := checkExpression(found[1:len(found)-1], fields); err != nil {
				return template{}, err
			}
		}
	}
	for _, name := range fields {
		if t.render(credential.Values{name: "x"}) != t.render(nil) { // its value changes the text
			t.used = append(t.used, name)
		}
	}
	return t, nil
}

// checkExpression checks the text between two braces.
func checkExpression(inside string, fields []string) error {
	name, argument, called := strings.Cut(inside, "(")
	argument, closed := strings.CutSuffix(argument, ")")
	isField := func(word string) bool { return slices.Contains(fields, word) }
	switch parts := words.FindAllString(argument, -1); {
	case !called && isField(name):
	case !called:
		return fmt.Errorf("it has an unknown field%s: write {%s}", named(name), strings.Join(fields, "} or {"))
	case functions[name] == nil:
		return fmt.Errorf("it has an unknown function%s: choose base64 or urlquery", named(name))
	case !closed, strings.ContainsAny(argument, "(){"):
		return fmt.Errorf("the parentheses of %s have no end or are nested: write {%s(token)}", name, name)
	case slices.Contains(parts, "'"):
		return errors.New("a quote has no end: write 'text' for text that is not a field")
	case !slices.ContainsFunc(parts, isField):
		return fmt.Errorf("%s has no field in its parentheses: write {%s(token)}", name, name)
	}
	return nil
}

// named quotes a name for an error. It returns "" for a text that is not a name, because that may
// be a part of a secret.
func named(text string) string {
	if !plain.MatchString(text) {
		return ""
	}
	return " " + text
}

// isLeftOut reports whether all fields of the template are optional and have no value.
func (t template) isLeftOut(fields credential.Fields, values credential.Values) bool {
	return len(t.used) > 0 && !slices.ContainsFunc(fields.OrSingle(), func(f credential.Field) bool {
		return slices.Contains(t.used, f.Name) && (!f.Optional || values[f.Name] != "")
	})
}

// render returns the text with the values of the fields.
func (t template) render(values credential.Values) string {
	return expressions.ReplaceAllStringFunc(t.text, func(found string) string {
		if found == "{{" || found == "}}" {
			return found[:1]
		}
		name, argument, called := strings.Cut(found[1:len(found)-1], "(")
		if !called {
			return values[name]
		}
		text := words.ReplaceAllStringFunc(strings.TrimSuffix(argument, ")"), func(word string) string {
			switch {
			case word[0] == '\'':
				return strings.Trim(word, "'")
			case slices.Contains(t.fields, word):
				return values[word]
			}
			return word
		})
		if t.escapedLater && name == "urlquery" {
			return text
		}
		return functions[name](text)
	})
}

// Escape percent-encodes a text, also a space, which not every server reads from a plus sign;
// decodeURIComponent and urllib.parse.unquote decode it.
func Escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
