package tokenfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	minCharacters = 20 // of a token: SHA-256 is fast, so an attacker with the file can guess short ones
	hashPrefix    = "sha256:"
)

// hashOf returns the first word of the line of a token.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// table holds the lines of a file by their hashes.
type table map[string]Line

// Line is one token of the file.
type Line struct {
	hash string
	oauth.Principal
	number int // in the file, from 1
}

// String returns the line as text.
func (l Line) String() string {
	words := []string{l.hash}
	if l.Subject != "" {
		words = append(words, "subject="+l.Subject)
	}
	for _, role := range l.Roles {
		words = append(words, "role="+role)
	}
	for _, scope := range l.Scopes {
		words = append(words, "scope="+scope)
	}
	return strings.Join(words, " ")
}

// parse parses a file. Its errors name the line and never contain its hash.
func parse(content []byte) (table, error) {
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // byte order mark
	tokens := table{}
	for i, line := range strings.SplitAfter(string(content), "\n") {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entry, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if first, twice := tokens[entry.hash]; twice {
			return nil, fmt.Errorf("line %d: it is the same token as line %d: keep one of them", i+1, first.number)
		}
		entry.number = i + 1
		tokens[entry.hash] = entry
	}
	if len(content) > 0 && content[len(content)-1] != '\n' { // as when an editor is still writing
		return nil, errors.New("the last line has no line break at its end, so it may be cut off: add one")
	}
	return tokens, nil
}

func parseLine(line string) (entry Line, err error) {
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t'
	}) {
		return entry, errors.New("it has bytes that are not text in UTF-8, perhaps because PowerShell has written " +
			"UTF-16: write it again in UTF-8")
	}
	words := strings.Fields(strings.Clone(line)) // or a subject would keep the whole file in memory
	entry.hash = words[0]
	encoded, isHash := strings.CutPrefix(entry.hash, hashPrefix)
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !isHash || err != nil || len(decoded) != sha256.Size {
		return entry, fmt.Errorf("it does not begin with %q and a whole hash: make the line again with "+
			"\"pasteport hash-token\"", hashPrefix)
	}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case value == "":
			return entry, fmt.Errorf("%q has no value: write subject=, role= or scope= with a value without spaces",
				word)
		case name == "subject" && entry.Subject != "":
			return entry, errors.New("it has two subjects: keep one")
		case name == "subject":
			entry.Subject = value
		case name == "role":
			entry.Roles = append(entry.Roles, value)
		case name == "scope":
			entry.Scopes = append(entry.Scopes, value)
		default:
			return entry, fmt.Errorf("%q is unknown: write subject=, role= or scope=", name)
		}
	}
	return entry, nil
}
