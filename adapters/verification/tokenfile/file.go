// Package tokenfile is an oauth.BearerVerifier for a site without code: a text file with one hashed token on each line, and who
// stands behind it. Lines are made with NewLine; those made for one file share its salt, so that a question costs one slow hash
// however many lines there are. Whoever has the file can try guesses against all of its lines at once, but each guess costs that
// slow hash, and long random tokens cannot be guessed at all.
package tokenfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// rewriting is how long an editor may leave the file empty before that says that no token holds any more.
const rewriting = 2 * time.Second

// File answers for the tokens of one file. It reads the file at each question, which costs far less than the hash, so that a
// change counts at once. While the file cannot be read, or has a mistake, it goes by what it has read before.
type File struct {
	path   string
	logger *slog.Logger
	hashes hasher

	mu      sync.Mutex
	content []byte
	tokens  table
	mistake string // that was logged, until the file is good again
}

var _ oauth.BearerVerifier = (*File)(nil)

// Open reads the file for the first time; then every mistake in it is an error.
func Open(path string, logger *slog.Logger) (*File, error) {
	f := &File{path: path, logger: logger, hashes: make(hasher, places)}
	return f, f.read()
}

// VerifyBearer implements oauth.BearerVerifier.
func (f *File) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	for salt, principals := range f.current(ctx) {
		hash, err := f.hashes.hash(ctx, token, salt)
		if err != nil {
			return oauth.Principal{}, fmt.Errorf("hashing a token: %w", err)
		}
		if principal, found := principals[hash]; found {
			return principal, nil
		}
	}
	return oauth.Principal{}, oauth.ErrUnknownBearer
}

// current is the file as it is now, or as it last was when it was good. Tables are never changed.
func (f *File) current(ctx context.Context) table {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.read()
	switch {
	case err == nil && f.mistake != "":
		f.mistake = ""
		f.logger.InfoContext(ctx, "token file is good again", "file", f.path)
	case err != nil && f.mistake != err.Error():
		f.mistake = err.Error()
		f.logger.ErrorContext(ctx, "token file cannot be used, the tokens read before stay in force", "error", err)
	}
	return f.tokens
}

func (f *File) read() error {
	content, found, err := load(f.path)
	if err != nil {
		return fmt.Errorf("reading the token file: %w", err)
	}
	if f.tokens != nil && bytes.Equal(content, f.content) {
		return nil
	}
	if f.tokens != nil && len(content) == 0 && time.Since(found.ModTime()).Abs() < rewriting {
		return fmt.Errorf("reading the token file %s: it was emptied just now, as while an editor writes it", f.path)
	}
	tokens, err := parse(content)
	if err != nil {
		return fmt.Errorf("reading the token file %s: %w", f.path, err)
	}
	f.content, f.tokens = content, tokens
	if len(tokens) == 0 {
		f.logger.Warn("token file has no token, so that nobody can connect: add a line that \"pasteport hash-token\" prints", "file", f.path)
	}
	if mode := found.Mode(); mode.Perm()&0o007 != 0 {
		f.logger.Warn("token file is open to everybody on this computer: run chmod o= on it", "file", f.path, "mode", mode.String())
	}
	return nil
}

// load reads no more than could be good, and waits for nobody who would write into a pipe.
func load(path string) ([]byte, fs.FileInfo, error) {
	found, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !found.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, nil, err
	}
	found, err = file.Stat() // by now, because it may have been emptied since
	return content, found, err
}

// NewLine hashes a token for the file at path, with the salt of most lines that are there, and refuses one that is there already.
// Without a path, or while there is no such file, it draws a salt.
func NewLine(path, token string, principal oauth.Principal) (Line, error) {
	entry := Line{Principal: principal}
	content, tokens, err := existing(path)
	if err != nil {
		return entry, err
	}
	for used, principals := range tokens {
		hashed := hashOf(token, used)
		if _, twice := principals[hashed]; twice {
			return entry, fmt.Errorf("this token is in line %d of the token file already: change or remove that line", lineOf(content, digest{used, hashed}))
		}
	}
	chosen := tokens.salt()
	entry.digest = digest{chosen, hashOf(token, chosen)}
	if read, err := parseLine(entry.String()); err != nil || !reflect.DeepEqual(read, entry) {
		return entry, errors.New("a subject, role or scope is empty, or has spaces or control characters: it has to be one word")
	}
	return entry, nil
}

// existing reads the file that a line is for; it is empty when there is none yet.
func existing(path string) ([]byte, table, error) {
	if path == "" {
		return nil, nil, nil
	}
	content, _, err := load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the token file: %w", err)
	}
	tokens, err := parse(content)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the token file %s: %w", path, err)
	}
	return content, tokens, nil
}
