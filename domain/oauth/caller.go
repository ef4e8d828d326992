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

// Principal is the person behind a host token, as the site's verifier describes them. Roles mean something to the site's own
// tool policy only; the OAuth layer never reads them.
type Principal struct {
	Subject string
	Roles   []string
	Scopes  []string // the most that this token may grant; nil leaves it to the server's default (B10)
}

// Check refuses a principal whose roles cannot be kept apart, an empty one or one with a control character, and what not every store
// can keep.
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

// KeyedSubject names a person to whom the site gives no subject by the fingerprint of their token. A name from before stays, when it was made
// with a server secret that is still kept.
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

// shortestSecret is the length in bytes below which a text is found in others by chance.
const shortestSecret = 8

// Reveals reports whether the token is in what is stored in clear of the principal (H3). One that is shorter than a secret can be
// is a word that may be somebody's name or role.
func (p Principal) Reveals(token HostToken) bool {
	return len(token.Reveal()) >= shortestSecret && slices.ContainsFunc(append([]string{p.Subject}, p.Roles...), func(said string) bool {
		return strings.Contains(said, token.Reveal())
	})
}

// Caller is who stands behind one request that presented a valid access token.
type Caller struct {
	Grant     string // stable over refreshes
	Client    ClientID
	Subject   string
	Roles     []string
	Scopes    Scopes
	ExpiresAt time.Time // when the presented access token dies
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
