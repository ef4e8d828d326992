package secret

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
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

// parseTemplate parses a template of the named fields. Its errors repeat only the names of fields
// and functions, because literal text may be a secret.
func parseTemplate(text string, fields []string) (Template, error) {
	var t Template
	for text != "" {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			return t.with(part{literal: text}), nil
		}
		t = t.with(part{literal: text[:at]})
		brace, rest := text[at:at+1], text[at+1:]
		if after, doubled := strings.CutPrefix(rest, brace); doubled {
			t, text = t.with(part{literal: brace}), after
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if brace == "}" || !closed {
			return Template{}, errors.New("a brace has no counterpart: write {token}, and {{ or }} for a brace itself")
		}
		expression, err := parseExpression(inside, fields)
		if err != nil {
			return Template{}, err
		}
		t, text = t.with(expression), after
	}
	return t, nil
}

func (t Template) with(p part) Template {
	if p.function != "" || p.field != "" || p.literal != "" {
		t.parts = append(t.parts, p)
	}
	return t
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
func named(name string) string {
	if name == "" || len(name) > 20 || strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) }) {
		return ""
	}
	return " " + name
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// parseArgument splits the argument of a function into words, quoted texts and the texts between
// them.
func parseArgument(text string, fields []string) (parts []part, err error) {
	for text != "" {
		if quoted, found := strings.CutPrefix(text, "'"); found {
			literal, rest, closed := strings.Cut(quoted, "'")
			if !closed {
				return nil, errors.New("a quote has no end: write 'text' for text that is not a field")
			}
			parts, text = append(parts, part{literal: literal}), rest
			continue
		}
		end := strings.IndexFunc(text, func(r rune) bool { return !isWord(r) })
		if end == 0 {
			end = strings.IndexFunc(text, func(r rune) bool { return isWord(r) || r == '\'' })
		}
		if end < 0 {
			end = len(text)
		}
		word := part{literal: text[:end]}
		if slices.Contains(fields, text[:end]) {
			word = part{field: text[:end]}
		}
		parts, text = append(parts, word), text[end:]
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
