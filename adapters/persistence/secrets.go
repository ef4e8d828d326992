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
	look
	file    os.FileInfo
	secrets []Secret
	bytes   [][]byte // of them; nobody writes into it
}

// look is one at the database, which a server does not allow.
type look struct {
	allowed bool
	seen    version
	at      time.Duration // since began
}

func (s *Store) look() look {
	now := look{at: time.Since(began)}
	if s.recent != nil {
		seen, err := s.recent.watch.atGlance()
		now.seen, now.allowed = seen, err == nil
	}
	return now
}

// shows that nobody has committed since, a glance ago at most.
func (l look) shows(now look) bool {
	return l.allowed && now.allowed && l.seen == now.seen && now.at-l.at < glance
}

// Secrets implements oauth.SecretKeeper with a file beside the database, never in it (J2). Whoever replaces them commits to the database, and so
// does whoever keeps what was sealed with the new one: until somebody commits, and for no longer than a glance, nobody has to look again.
func (s *Store) Secrets() ([][]byte, error) {
	now := s.look()
	if last := s.secrets.Load(); last != nil && last.shows(now) {
		return last.bytes, nil
	}
	kept, err := s.lookAtSecrets(now)
	if err != nil {
		return nil, err
	}
	return kept.bytes, nil
}

// KeptSecrets returns the server secret, and behind it those that were replaced.
func (s *Store) KeptSecrets() ([]Secret, error) {
	kept, err := s.lookAtSecrets(s.look())
	if err != nil {
		return nil, err
	}
	return slices.Clone(kept.secrets), nil
}

// lookAtSecrets goes by the file that is there, behind a look at the database: whoever commits between the two has it looked at again. A new
// secret comes as a new file, so an unchanged one is not read again.
func (s *Store) lookAtSecrets(before look) (*keptSecrets, error) {
	now := &keptSecrets{look: before}
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
