package jsonrpc

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// longestMember is the number of letters of the longest member name that is known.
const longestMember = len("resourceSubscriptions")

// separators are the characters that decoders ignore in member names: hyphens and underscores, also
// those that become one when a name is folded.
const separators = "-_\ufe33\ufe34\ufe4d\ufe4e\ufe4f\ufe63\uff0d\uff3f"

// member is a member name as a decoder reads it that ignores case, width, separators and invisible
// characters.
type member struct {
	exact     string // of a known one
	letters   [longestMember]byte
	length    int // of letters; larger for an unknown name
	separated bool
}

func membersOf(names ...string) (all []member) {
	for _, name := range names {
		m := readMember(name)
		m.exact = name
		all = append(all, m)
	}
	return all
}

// readMember reads a member name. It stops at the first character that no known name has in any
// spelling, because a name can be as long as the body.
func readMember(name string) (m member) {
	for len(name) > 0 && m.length <= longestMember {
		r, size := utf8.DecodeRuneInString(name)
		switch {
		case strings.ContainsRune(separators, r):
			m.separated = true
		case isInvisible(r):
		default:
			m.add(lettersOf(name[:size], r))
		}
		name = name[size:]
	}
	return m
}

func (m *member) add(letters string) {
	if letters == "" {
		m.length = longestMember + 1
	}
	for i := range len(letters) {
		if m.length < longestMember {
			m.letters[m.length] = letters[i]
		}
		m.length++
	}
}

// lettersOf returns the ASCII that case folding and NFKC make of a character, "" for none.
func lettersOf(encoded string, r rune) string {
	switch {
	case r == '\u00df', r == '\u1e9e':
		return "ss"
	case r >= utf8.RuneSelf:
		encoded = string(norm.NFKC.PropertiesString(encoded).Decomposition())
	}
	for i := range len(encoded) {
		if encoded[i] >= utf8.RuneSelf {
			return ""
		}
	}
	return strings.ToLower(encoded)
}

// isVariantOf reports whether the name is another spelling. One without separators is none of a
// name with a separator, such as meta and _meta.
func (m member) isVariantOf(known member) bool {
	return m.letters == known.letters && m.length == known.length && (m.separated || !known.separated)
}

// IsMember reports whether a decoder could read a member name as the exact one, which has at most
// longestMember letters.
func IsMember(name, exact string) bool {
	return name == exact || readMember(name).isVariantOf(readMember(exact))
}

// Length returns the bytes of a name after the compatibility decomposition, which is its longest
// form while it is folded. It stops above the limit.
func Length(name string, limit int) (length int) {
	for at := 0; at < len(name) && length <= limit; {
		if name[at] < utf8.RuneSelf {
			length, at = length+1, at+1
			continue
		}
		properties := norm.NFKC.PropertiesString(name[at:])
		size := max(1, properties.Size())
		length, at = length+max(size, len(properties.Decomposition())), at+size
	}
	return length
}
