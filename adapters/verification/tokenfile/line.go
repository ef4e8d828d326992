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
	maxBytes      = 1 << 20
	minCharacters = 20 // of a token: SHA-256 is fast, so an attacker with the file can guess short ones
	digestPrefix  = "sha256:"
)

// digest is the SHA-256 of a token.
type digest [sha256.Size]byte

// String returns the first word of a line.
func (d digest) String() string { return digestPrefix + base64.RawURLEncoding.EncodeToString(d[:]) }

// table holds the lines of a file.
type table map[digest]Line

// Line is one token of the file.
type Line struct {
	digest
	oauth.Principal
	number int // in the file, from 1
}

// String returns the line as text.
func (l Line) String() string {
	words := []string{l.digest.String()}
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
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return nil, errors.New("the file is in UTF-16, as PowerShell writes it: save it as UTF-8")
	}
	if len(content) > maxBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxBytes)
	}
	tokens := table{}
	for i, line := range strings.SplitAfter(string(content), "\n") {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entry, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if first, twice := tokens[entry.digest]; twice {
			return nil, fmt.Errorf("line %d: it is the same token as line %d: keep one of them", i+1, first.number)
		}
		entry.number = i + 1
		tokens[entry.digest] = entry
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
		return entry, errors.New("it has bytes that are not text: write it again")
	}
	words := strings.Fields(line)
	if entry.digest, err = parseDigest(words[0]); err != nil {
		return entry, err
	}
	for _, word := range words[1:] {
		// Clone, or a subject would keep the whole file in memory.
		name, value, _ := strings.Cut(strings.Clone(word), "=")
		if value == "" {
			return entry, fmt.Errorf("%q has no value: write subject=, role= or scope= with a value without spaces",
				word)
		}
		switch {
		case name == "subject" && entry.Subject == "":
			entry.Subject = value
		case name == "subject":
			return entry, errors.New("it has two subjects: keep one")
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

func parseDigest(word string) (d digest, err error) {
	encoded, ours := strings.CutPrefix(word, digestPrefix)
	if !ours {
		return d, fmt.Errorf("it does not begin with %q: make the line again with \"pasteport hash-token\"",
			digestPrefix)
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(decoded) != len(d) {
		return d, errors.New("its hash is damaged: make the line again with \"pasteport hash-token\"")
	}
	return digest(decoded), nil
}
