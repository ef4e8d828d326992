package tokenfile

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	maxBytes = 1 << 20
	maxSalts = 16 // a verification computes one hash for each
)

// table holds the principals of a file by salt and hash.
type table map[salt]map[hash]oauth.Principal

// Line is one token of the file.
type Line struct {
	digest
	oauth.Principal
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
	tokens, lines := table{}, map[digest]int{}
	for i, line := range strings.SplitAfter(string(content), "\n") {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entry, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if first, twice := lines[entry.digest]; twice {
			return nil, fmt.Errorf("line %d: it is the same token as line %d: keep one of them", i+1, first)
		}
		lines[entry.digest] = i + 1
		if err := tokens.add(entry); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if len(content) > 0 && content[len(content)-1] != '\n' { // as when an editor is still writing
		return nil, errors.New("the last line has no line break at its end, so it may be cut off: add one")
	}
	return tokens, nil
}

func (t table) add(entry Line) error {
	if t[entry.salt] == nil {
		if len(t) == maxSalts {
			return fmt.Errorf("it has a salt beyond the limit of %d: make the line again with \"pasteport hash-token "+
				"--token-file\" and this file", maxSalts)
		}
		t[entry.salt] = map[hash]oauth.Principal{}
	}
	t[entry.salt][entry.hash] = entry.Principal
	return nil
}

// salt returns the salt of most lines, so that a file has few salts. It returns a new one for an
// empty file.
func (t table) salt() (most salt) {
	if len(t) == 0 {
		return newSalt()
	}
	for candidate, lines := range t {
		if len(lines) > len(t[most]) {
			most = candidate
		}
	}
	return most
}

// lineOf returns the number of the line with the digest.
func lineOf(content []byte, of digest) int {
	for i, line := range strings.Split(string(content), "\n") {
		if strings.Contains(line, of.String()) && !strings.HasPrefix(line, "#") {
			return i + 1
		}
	}
	return 0
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

// parseDigest reads the PHC string of digest.String.
func parseDigest(text string) (d digest, err error) {
	encoded, ours := strings.CutPrefix(text, phcPrefix)
	if !ours {
		return d, errors.New("it does not begin with " + phcPrefix + ": make the line with \"pasteport hash-token\"")
	}
	saltText, hashText, _ := strings.Cut(encoded, "$")
	if !decode(d.salt[:], saltText) || !decode(d.hash[:], hashText) {
		return d, errors.New("its hash is damaged: make the line again with \"pasteport hash-token\"")
	}
	return d, nil
}

// decode fills target from unpadded base64 of exactly that length.
func decode(target []byte, text string) bool {
	decoded, err := base64.RawStdEncoding.Strict().DecodeString(text)
	return err == nil && len(decoded) == len(target) && copy(target, decoded) == len(target)
}

// The cost of one hash is the minimum that OWASP recommends for argon2id: about 20 ms and 19 MiB.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	phcPrefix = "$argon2id$v=19$m=19456,t=2,p=1$"
)

// maxHashes bounds the memory of concurrent hashes to 76 MiB.
const maxHashes = 4

type (
	salt   [16]byte
	hash   [32]byte
	digest struct {
		salt salt
		hash hash
	}
)

// String returns the digest in the PHC string format.
func (d digest) String() string {
	return phcPrefix + base64.RawStdEncoding.EncodeToString(d.salt[:]) + "$" +
		base64.RawStdEncoding.EncodeToString(d.hash[:])
}

func newSalt() (drawn salt) {
	_, _ = rand.Read(drawn[:]) // never fails
	return drawn
}

func hashOf(token string, s salt) hash {
	return hash(argon2.IDKey([]byte(token), s[:], passes, memoryKiB, lanes, uint32(len(hash{}))))
}

// hasher limits the number of concurrent hashes.
type hasher chan struct{}

func (h hasher) hash(ctx context.Context, token string, s salt) (hash, error) {
	select {
	case h <- struct{}{}:
	case <-ctx.Done():
		return hash{}, ctx.Err()
	}
	defer func() { <-h }()
	return hashOf(token, s), nil
}
