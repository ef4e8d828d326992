package oauth

import (
	"errors"
	"strings"
	"time"
	"unicode"
)

// Principal is the person behind a host token, as the site's verifier describes them. Roles mean something to the site's own
// tool policy only; the OAuth layer never reads them.
type Principal struct {
	Subject string
	Roles   []string
	Scopes  []string // the most that this token may grant; nil leaves it to the server's default (B10)
}

// Check refuses a principal whose roles cannot be kept apart: an empty one, or one with a control character.
func (p Principal) Check() error {
	for _, role := range p.Roles {
		if role == "" || strings.ContainsFunc(role, unicode.IsControl) {
			return errors.New("a role is empty or holds a control character")
		}
	}
	return nil
}

// Caller is who stands behind one request that presented a valid access token.
type Caller struct {
	Grant     string // stable over refreshes; sessions are bound to it (G14)
	Client    ClientID
	Subject   string
	Roles     []string
	Scopes    Scopes
	ExpiresAt time.Time // when the presented access token dies
}
