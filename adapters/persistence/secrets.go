package persistence

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.SecretKeeper = (*Store)(nil)

// keptSecrets are those of a file, as it was when somebody last looked.
type keptSecrets struct {
	file    os.FileInfo
	secrets []Secret
	bytes   [][]byte // of them; nobody writes into it

	watched bool
	seen    version       // what the database was like before
	at      time.Duration // since began
}

// Secrets implements oauth.SecretKeeper with a file beside the database, never in it (J2). Whoever replaces them commits to the database, and so
// does whoever keeps what was sealed with the new one: until somebody commits, and for no longer than a glance, nobody has to look again.
func (s *Store) Secrets() ([][]byte, error) {
	seen, watched := s.glance()
	if last := s.secrets.Load(); watched && last != nil && last.watched && last.seen == seen && time.Since(began)-last.at < glance {
		return last.bytes, nil
	}
	kept, err := s.lookAtSecrets()
	if err != nil {
		return nil, err
	}
	return kept.bytes, nil
}

// KeptSecrets returns the server secret, and behind it those that were replaced.
func (s *Store) KeptSecrets() ([]Secret, error) {
	kept, err := s.lookAtSecrets()
	if err != nil {
		return nil, err
	}
	return slices.Clone(kept.secrets), nil
}

// glance is what the database is like; a server does not tell.
func (s *Store) glance() (seen version, watched bool) {
	if s.recent == nil {
		return version{}, false
	}
	seen, err := s.recent.watch.atGlance()
	return seen, err == nil
}

// lookAtSecrets goes by the file that is there. A new secret comes as a new file, so an unchanged one is not read again.
func (s *Store) lookAtSecrets() (*keptSecrets, error) {
	now := &keptSecrets{at: time.Since(began)}
	now.seen, now.watched = s.glance()
	var err error
	if now.file, err = os.Stat(s.secretFile); err != nil {
		return nil, failed("reading the server secrets", err)
	}
	if last := s.secrets.Load(); last != nil && unchanged(last.file, now.file) {
		now.secrets, now.bytes = last.secrets, last.bytes
	} else if err := now.read(s.secretFile); err != nil {
		return nil, err
	}
	s.secrets.Store(now)
	return now, nil
}

func (k *keptSecrets) read(path string) error {
	var err error
	if k.secrets, err = readSecrets(path, k.file); err != nil {
		return err
	}
	for _, secret := range k.secrets {
		k.bytes = append(k.bytes, secret.bytes)
	}
	return nil
}

func readSecrets(path string, found fs.FileInfo) ([]Secret, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, failed("reading the server secrets", err)
	}
	if len(content) == secretLength {
		return []Secret{{found.ModTime().UTC(), content}}, nil
	}
	secrets, err := parseSecrets(string(content))
	if err != nil {
		return nil, failed("reading the server secrets", fmt.Errorf("%s %w: restore it", path, err))
	}
	return secrets, nil
}

func unchanged(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}
