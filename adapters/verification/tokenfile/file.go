// Package tokenfile verifies host tokens of a site without code. A File is an oauth.BearerVerifier
// over a text file with one hashed token and its principal per line. NewLine makes a line. An
// attacker with the file can guess short tokens quickly, so NewLine refuses them.
package tokenfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"
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
	tokens  table
	mistake string // the last one that was logged; "" while the file is valid
}

var _ oauth.BearerVerifier = (*File)(nil)

// Open reads the file and fails on any mistake in it.
func Open(path string, logger *slog.Logger) (*File, error) {
	f := &File{path: path, logger: logger}
	return f, f.read()
}

// VerifyBearer implements oauth.BearerVerifier.
func (f *File) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	if line, found := f.current(ctx)[hashOf(token)]; found {
		return line.Principal, nil
	}
	return oauth.Principal{}, oauth.ErrUnknownBearer
}

// current returns the table of the file, or the last valid one. Tables are immutable.
func (f *File) current(ctx context.Context) table {
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
	return f.tokens
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
