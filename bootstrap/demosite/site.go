// Package demosite is a small site with articles and API tokens in one JSON file, and an MCP server
// for the articles. It is an example of a site that embeds Pasteport: its only connection to OAuth
// is the caller of a request. Site holds the file, and Site.MCPServer serves it.
package demosite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const (
	fileName  = "site.json"
	ownerOnly = 0o600
)

// Site is a site in its file. It is safe for concurrent use, also by several processes.
type Site struct{ file string }

// content is what the file holds.
type content struct {
	Articles []Article        `json:"articles"` // oldest first
	Tokens   map[string]owner `json:"tokens"`   // by their digests
}

// Open opens the site in this folder, and creates it there if necessary. Only the owner can read
// its file.
func Open(folder string) (*Site, error) {
	s := &Site{filepath.Join(folder, fileName)}
	err := s.locked(func() error {
		_, err := s.read()
		if errors.Is(err, fs.ErrNotExist) {
			c := &content{Tokens: map[string]owner{}}
			c.add("House style", "- One thought to a paragraph.\n- Short words before long ones.\n"+
				"- Say what to do, then why.", firstEditor)
			c.add("Welcome to the demo site", "Everything here is **plain Markdown**. "+
				"Ask your AI client to list the articles, or to write one.", firstEditor)
			return s.write(c)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the demo site in %s, which must be a writable folder: %w", folder, err)
	}
	return s, nil
}

// Ping reads the file and writes it again, so that it notices a full disk.
func (s *Site) Ping(context.Context) error {
	return s.change(func(*content) error { return nil })
}

// change applies verb to the content, and stores the result unless verb returns an error.
func (s *Site) change(verb func(*content) error) error {
	return s.locked(func() error {
		c, err := s.read()
		if err != nil {
			return err
		}
		if err := verb(c); err != nil {
			return err
		}
		return s.write(c)
	})
}

// locked runs act while no other process and no other goroutine does.
func (s *Site) locked(act func() error) (err error) {
	folder, name := filepath.Split(s.file)
	lock := flock.New(folder+"."+name+".lock", flock.SetPermissions(ownerOnly))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking the site: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return act()
}

func (s *Site) read() (*content, error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return nil, fmt.Errorf("reading the site: %w", err)
	}
	c := new(content)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("decoding the site in %s: %w", s.file, err)
	}
	return c, nil
}

// write replaces the file at once, so that readers see a whole version without a lock.
func (s *Site) write(c *content) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the site: %w", err)
	}
	next, err := os.OpenFile(s.file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, ownerOnly)
	if err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), s.file)
	}
	if err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}
	return nil
}
