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

// Template is a text with fields in braces: literal text, {token}, {base64(user:token)} or
// {urlquery(token)}. In the parentheses of a function, a word that is the name of a field stands
// for its value, and all other text is literal; quotes make a name literal, as in
// {base64(mail@example.com/'token':token)}. Two braces stand for one.
type Template struct{ parts []part }

// part is literal text, or a field, or a function of such parts.
type part struct {
	literal  string
	field    string
	function string // "" for none
	argument []part
}

const (
	encodeBase64 = "base64"
	encodeQuery  = "urlquery"
)

// functions are the functions of the language, for its errors.
var functions = []string{encodeBase64, encodeQuery}

var (
	tokens = regexp.MustCompile(`\{\{|\}\}|\{[^}]*\}|[{}]|[^{}]+`)           // of a template
	words  = regexp.MustCompile(`'[^']*'|'|[A-Za-z0-9_-]+|[^A-Za-z0-9_'-]+`) // of an argument
	plain  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,20}$`)                     // name that an error may repeat
)

// parseTemplate parses a template of the named fields. Its errors repeat only the names of fields
// and functions, because literal text may be a secret.
func parseTemplate(text string, fields []string) (t Template, err error) {
	for _, token := range tokens.FindAllString(text, -1) {
		next := part{literal: token}
		switch {
		case token == "{{", token == "}}":
			next.literal = token[:1]
		case token == "{", token == "}":
			return Template{}, errors.New("a brace has no counterpart: write {token}, and {{ or }} for a brace itself")
		case token[0] == '{':
			if next, err = parseExpression(token[1:len(token)-1], fields); err != nil {
				return Template{}, err
			}
		}
		t.parts = append(t.parts, next)
	}
	return t, nil
}

// parseExpression parses the text between two braces.
func parseExpression(inside string, fields []string) (part, error) {
	name, argument, called := strings.Cut(inside, "(")
	if !called {
		if !slices.Contains(fields, name) {
			return part{}, fmt.Errorf("it has an unknown field%s: write {%s}", named(name),
				strings.Join(fields, "} or {"))
		}
		return part{field: name}, nil
	}
	argument, closed := strings.CutSuffix(argument, ")")
	switch {
	case !slices.Contains(functions, name):
		return part{}, fmt.Errorf("it has an unknown function%s: choose %s", named(name),
			strings.Join(functions, " or "))
	case !closed, strings.ContainsAny(argument, "(){"):
		return part{}, fmt.Errorf("the parentheses of %s have no end or are nested: write {%s(token)}", name, name)
	}
	parts, err := parseArgument(argument, fields)
	if err == nil && !slices.ContainsFunc(parts, func(p part) bool { return p.field != "" }) {
		err = fmt.Errorf("%s has no field in its parentheses: write {%s(token)}", name, name)
	}
	return part{function: name, argument: parts}, err
}

// named quotes a name for an error. It returns "" for a text that is not a name, because that may
// be a part of a secret.
func named(text string) string {
	if !plain.MatchString(text) {
		return ""
	}
	return " " + text
}

// parseArgument splits the argument of a function into words, quoted texts and the texts between
// them.
func parseArgument(text string, fields []string) (parts []part, err error) {
	for _, word := range words.FindAllString(text, -1) {
		next := part{literal: word}
		switch {
		case word == "'":
			return nil, errors.New("a quote has no end: write 'text' for text that is not a field")
		case word[0] == '\'':
			next.literal = word[1 : len(word)-1]
		case slices.Contains(fields, word):
			next = part{field: word}
		}
		parts = append(parts, next)
	}
	return parts, nil
}

// Uses reports whether the template contains the value of a field.
func (t Template) Uses(field string) bool { return usesField(t.parts, field) }

func usesField(parts []part, field string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.field == field || usesField(p.argument, field) })
}

// isLeftOut reports whether all fields of the template are optional and have no value.
func (t Template) isLeftOut(fields credential.Fields, values credential.Values) bool {
	used := slices.DeleteFunc(slices.Clone(fields.OrSingle()), func(f credential.Field) bool { return !t.Uses(f.Name) })
	return len(used) > 0 && !slices.ContainsFunc(used, func(f credential.Field) bool {
		return !f.Optional || values[f.Name] != ""
	})
}

// Render returns the text with the values of the fields.
func (t Template) Render(values map[string]string) string { return render(t.parts, values) }

func render(parts []part, values map[string]string) string {
	var text strings.Builder
	for _, p := range parts {
		argument := render(p.argument, values)
		switch p.function {
		case encodeBase64:
			argument = base64.StdEncoding.EncodeToString([]byte(argument))
		case encodeQuery:
			argument = escape(argument)
		}
		text.WriteString(p.literal + values[p.field] + argument)
	}
	return text.String()
}

// escape percent-encodes a text, also a space, which not every server reads from a plus sign.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// unescaped returns the template without urlquery, for a text that is percent-encoded as a whole.
func (t Template) unescaped() Template {
	var plain Template
	for _, p := range t.parts {
		if p.function == encodeQuery {
			plain.parts = append(plain.parts, p.argument...)
			continue
		}
		plain.parts = append(plain.parts, p)
	}
	return plain
}
