// Package tokenfile verifies host tokens of a site without code. A File is an oauth.BearerVerifier
// over a text file with one hashed token and its principal per line. NewLine makes a line.
package tokenfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pasteport/pasteport/domain/oauth"
)

// emptyDelay is the age after which an empty file takes effect, because editors truncate a file
// before they write it.
const emptyDelay = 2 * time.Second

// File verifies the tokens of one file. It reads the file at each verification, so that changes
// take effect immediately. While the file is unreadable or invalid, the last valid content applies.
// It is safe for concurrent use.
type File struct {
	path   string
	logger *slog.Logger

	mu      sync.Mutex
	content []byte
	tokens  map[string]Line // by their hashes
	mistake string          // the last one that was logged; "" while the file is valid
}

// Open reads the file and fails on any mistake in it.
func Open(path string, logger *slog.Logger) (*File, error) {
	f := &File{path: path, logger: logger}
	return f, f.read()
}

// VerifyBearer implements oauth.BearerVerifier.
func (f *File) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.read()
	switch {
	case err == nil && f.mistake != "":
		f.mistake = ""
		f.logger.InfoContext(ctx, "token file is valid again", "file", f.path)
	case err != nil && f.mistake != err.Error():
		f.mistake = err.Error()
		f.logger.ErrorContext(ctx, "token file cannot be used, the tokens read before stay valid", "error", err)
	}
	if line, found := f.tokens[hashOf(token)]; found {
		return line.Principal, nil
	}
	return oauth.Principal{}, oauth.ErrUnknownBearer
}

func (f *File) read() error {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading the token file: %w", err)
	}
	if f.tokens != nil && bytes.Equal(content, f.content) {
		return nil
	}
	found, err := os.Stat(f.path)
	if f.tokens != nil && len(content) == 0 && err == nil && time.Since(found.ModTime()).Abs() < emptyDelay {
		return fmt.Errorf("reading the token file %s: it was emptied just now, perhaps by an editor that is writing it",
			f.path)
	}
	tokens, err := parse(content)
	if err != nil {
		return fmt.Errorf("reading the token file %s: %w", f.path, err)
	}
	f.content, f.tokens = content, tokens
	if len(tokens) == 0 {
		f.logger.Warn("token file has no token, so no client can connect: add a line from \"pasteport hash-token\"",
			"file", f.path)
	}
	return nil
}

// NewLine hashes a token for the file at path, which may be empty or missing. It fails for a token
// that is in the file.
func NewLine(path, token string, principal oauth.Principal) (Line, error) {
	entry := Line{hash: hashOf(token), Principal: principal}
	if utf8.RuneCountInString(token) < minCharacters {
		return entry, fmt.Errorf("the token has fewer than %d characters, so it could be guessed from its hash: "+
			"use a longer one, or run \"pasteport hash-token --new\", which makes one", minCharacters)
	}
	content, err := os.ReadFile(path)
	if err != nil && path != "" && !errors.Is(err, fs.ErrNotExist) {
		return entry, fmt.Errorf("reading the token file: %w", err)
	}
	tokens, err := parse(content)
	if err != nil {
		return entry, fmt.Errorf("reading the token file %s: %w", path, err)
	}
	if first, twice := tokens[entry.hash]; twice {
		return entry, fmt.Errorf("this token is in line %d of the token file already: change or remove that line",
			first.number)
	}
	if read, err := parseLine(entry.String()); err != nil || !reflect.DeepEqual(read, entry) {
		return entry, errors.New(
			"a subject, role or scope is empty, or has spaces or control characters: it must be one word")
	}
	return entry, nil
}

const (
	minCharacters = 20 // of a token: SHA-256 is fast, so an attacker with the file can guess short ones
	hashPrefix    = "sha256:"
)

// hashOf returns the first word of the line of a token.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

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
func parse(content []byte) (map[string]Line, error) {
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // byte order mark
	tokens := map[string]Line{}
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
	isOdd := func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && r != '\t' }
	if strings.ContainsFunc(line, isOdd) {
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
