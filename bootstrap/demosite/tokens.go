package demosite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	firstEditor = "editor" // owns the first articles and the token of EnsureEditorToken
	tokenPrefix = "demo_"  // for people and secret scanners
	maxToken    = 4096     // bytes; the limit of the consent page
)

// Role is the role of an API token on the site.
type Role string

// The roles. Each may also use the tools of the previous one.
const (
	Reader Role = "reader"
	Author Role = "author"
	Editor Role = "editor"
)

// toolsOf lists the tools that each role may use.
var toolsOf = map[Role][]string{
	Reader: {"list_articles", "get_article"},
	Author: {"list_articles", "get_article", "create_article"},
	Editor: {"list_articles", "get_article", "create_article", "delete_article"},
}

// MayCall is the tool policy of the site: it reports whether one of the caller's roles allows the
// tool.
func (s *Site) MayCall(caller oauth.Caller, tool string) bool {
	return slices.ContainsFunc(caller.Roles, func(role string) bool {
		return slices.Contains(toolsOf[Role(role)], tool)
	})
}

// owner is the owner of a token, which the site stores only as its digest.
type owner struct {
	Name string `json:"owner"`
	Role Role   `json:"role"`
}

func digestOf(token string) string {
	digest := sha256.Sum256([]byte(token))
	return hex.EncodeToString(digest[:])
}

// EnsureEditorToken stores the token as one of an editor. If token is empty and no editor has one,
// it creates a token, stores it and returns it.
func (s *Site) EnsureEditorToken(token string) (created string, err error) {
	if err := CheckToken(token); err != nil {
		return "", err
	}
	err = s.change(func(c *content) error {
		if token == "" {
			for _, known := range c.Tokens {
				if known.Role == Editor {
					return nil
				}
			}
			created = tokenPrefix + rand.Text()
			token = created
		}
		c.Tokens[digestOf(token)] = owner{firstEditor, Editor}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("ensuring an editor's token: %w", err)
	}
	return created, nil
}

// CheckToken returns an error for a token that EnsureEditorToken cannot use. The error does not
// contain the token.
func CheckToken(token string) error {
	if len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("a token is at most %d printable ASCII characters without spaces", maxToken)
	}
	return nil
}

// IssueToken creates a token for a person and returns it. A person may have several.
func (s *Site) IssueToken(name string, role Role) (token string, err error) {
	token = tokenPrefix + rand.Text()
	err = s.change(func(c *content) error {
		c.Tokens[digestOf(token)] = owner{name, role}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("issuing a token: %w", err)
	}
	return token, nil
}

// RevokeToken deletes the token.
func (s *Site) RevokeToken(token string) error {
	err := s.change(func(c *content) error {
		delete(c.Tokens, digestOf(token))
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoking a token: %w", err)
	}
	return nil
}

// VerifyBearer implements oauth.BearerVerifier: the subject is the token's owner, and the only role
// is the token's.
func (s *Site) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	c, err := s.read()
	if err != nil {
		return oauth.Principal{}, fmt.Errorf("looking up a token: %w", err)
	}
	known, found := c.Tokens[digestOf(token)]
	if !found {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	return oauth.Principal{Subject: known.Name, Roles: []string{string(known.Role)}}, nil
}
