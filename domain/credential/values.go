package credential

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Values are the values of a credential by the name of their field.
type Values map[string]string

// manyFields begins the text of several fields. No token begins with a control character.
const manyFields = "\x01"

// Encode returns the values as one text: a lone token as it is, so that a site without fields has
// the same text, and other values with their lengths, sorted by name. Empty values are left out.
func (v Values) Encode() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(name string) bool { return v[name] == "" })
	if len(names) == 1 && names[0] == Token {
		return v[Token]
	}
	var text strings.Builder
	text.WriteString(manyFields)
	for _, name := range names {
		for _, part := range []string{name, v[name]} {
			text.WriteString(strconv.Itoa(len(part)) + ":" + part)
		}
	}
	return text.String()
}

// Decode is the reverse of Encode. A text that is not encoded is a token.
func Decode(text string) Values {
	rest, many := strings.CutPrefix(text, manyFields)
	if !many {
		return Values{Token: text}
	}
	values := Values{}
	for rest != "" {
		var name, value string
		var ok bool
		if name, rest, ok = cutPart(rest); !ok {
			return Values{}
		}
		if value, rest, ok = cutPart(rest); !ok {
			return Values{}
		}
		values[name] = value
	}
	return values
}

// cutPart returns the text before and after the first length-prefixed part.
func cutPart(text string) (part, rest string, ok bool) {
	length, after, found := strings.Cut(text, ":")
	size, err := strconv.ParseUint(length, 10, 16)
	if !found || err != nil || int(size) > len(after) {
		return "", "", false
	}
	return after[:size], after[size:], true
}
