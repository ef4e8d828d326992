package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pasteport/pasteport/domain/seal"
)

// Principal is the person behind a host token, as the BearerVerifier returns them. The OAuth layer does not interpret the roles; they are for
// the tool policy of the MCP server.
type Principal struct {
	Subject string
	Roles   []string
	Scopes  []string // that this token may grant at most; nil means ScopeCatalogue.Ceiling (B10)
}

// Check returns an error for a role that is empty or has a control character, because a store joins roles with line feeds, and for a text that not
// every store can keep.
func (p Principal) Check() error {
	for _, text := range append([]string{p.Subject}, p.Roles...) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return errors.New("the subject or a role is no UTF-8 or holds NUL")
		}
	}
	for _, role := range p.Roles {
		if role == "" || strings.ContainsFunc(role, unicode.IsControl) {
			return errors.New("a role is empty or holds a control character")
		}
	}
	return nil
}

// KeyedSubject returns the subject of a person to whom the site gives none: the fingerprint of their token. It returns the earlier subject, before,
// if that was made with a server secret that is still kept.
func KeyedSubject(host HostToken, before string, keys seal.KeyRing) (string, error) {
	prints, err := keys.Fingerprints(host)
	if err != nil {
		return "", err
	}
	for _, print := range prints {
		if hex.EncodeToString(print[:]) == before {
			return before, nil
		}
	}
	return hex.EncodeToString(prints[0][:]), nil
}

// shortestSecret is the length in bytes below which a text occurs in others by chance.
const shortestSecret = 8

// Reveals reports whether the subject or a role, which are stored in clear, contains the token (H3). A token below shortestSecret is not checked,
// because it may be a word of a name.
func (p Principal) Reveals(token HostToken) bool {
	return len(token.Reveal()) >= shortestSecret && slices.ContainsFunc(append([]string{p.Subject}, p.Roles...), func(text string) bool {
		return strings.Contains(text, token.Reveal())
	})
}

// Caller is the sender of a request with a valid access token.
type Caller struct {
	Grant     string // stable over refreshes
	Client    ClientID
	Subject   string
	Roles     []string
	Scopes    Scopes
	ExpiresAt time.Time // of the access token
}

// SessionOwner returns the owner of the caller's sessions at a resource: the client together with the subject, which stands for the host
// token where the site names no subject. A new consent of the same person in the same client has the same owner, unless the
// site names no subject and the server secret was rotated in between (G14).
func (c Caller) SessionOwner(resource Resource) string {
	digest := sha256.New()
	for _, part := range []string{c.Client.String(), c.Subject, resource.String()} {
		_, _ = fmt.Fprintf(digest, "%d:%s", len(part), part) // the length keeps two different owners from joining into one text
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}
