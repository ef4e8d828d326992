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

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/domain/toolset"
)

// Principal is the person behind a host token, as a BearerVerifier returns them. The roles are for
// the tool policy of the MCP server only.
type Principal struct {
	Subject string
	Name    string // of the account, for people; if it is empty, they see Subject
	TokenID string // what the site calls the token, which says nothing about its text; see EndGrantsOfTokenID
	Roles   []string
	Scopes  []string // the most that this token can grant, besides OfflineAccess; nil for the default scopes
}

// mostRoles is the maximum length of all roles together, in bytes: they have to fit into the header
// with which one replica passes a request on to another.
const mostRoles = 8 << 10

// Check returns an error for a text that not every store can keep, for a role that is empty or has
// a control character, because stores join roles with line feeds, and for too many roles.
func (p Principal) Check() error {
	if len(strings.Join(p.Roles, "\n")) > mostRoles {
		return fmt.Errorf("the roles are longer than %d bytes together", mostRoles)
	}
	for _, text := range p.stored() {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return errors.New("the subject, the name, the token id or a role is not UTF-8 or holds NUL")
		}
	}
	for _, role := range p.Roles {
		if role == "" || strings.ContainsFunc(role, unicode.IsControl) {
			return errors.New("a role is empty or holds a control character")
		}
	}
	return nil
}

// stored returns the texts that are stored in clear.
func (p Principal) stored() []string {
	return append([]string{p.Subject, p.Name, p.TokenID}, p.Roles...)
}

// keyedPrefix distinguishes a KeyedSubject from a digest by which a site itself may name a person.
const keyedPrefix = "token-"

// KeyedSubject returns the subject of a person for whom the site names none: the fingerprint of the
// token with which they connect.
func KeyedSubject(host HostToken, keys seal.KeyRing) (string, error) {
	print, err := keys.Fingerprint(host)
	return keyedPrefix + hex.EncodeToString(print[:]), err
}

// Reveals reports whether a text that is stored in clear contains the token, or the value of a
// secret field. It ignores secrets that are so short that a name may contain them by chance.
func (p Principal) Reveals(token HostToken, fields credential.Fields) bool {
	return slices.ContainsFunc(p.stored(), fields.Finder(token.Values()).Finds)
}

// Caller is the sender of a request with a valid access token.
type Caller struct {
	Grant      string // the grant id; refreshes do not change it
	Client     ClientID
	ClientName string // the client's own claim
	Subject    string
	Account    string // the name of the account for people; "" for none
	Roles      []string
	Scopes     Scopes
	IssuedAt   time.Time // of the access token
	ExpiresAt  time.Time
	Tools      toolset.Pins
}

// SessionOwner returns an opaque name for the owner of the caller's sessions at a resource, the
// same for every consent of a subject in a client.
func (c Caller) SessionOwner(resource Resource) string {
	digest := sha256.New()
	for _, part := range []string{c.Client.String(), c.Subject, resource.String()} {
		_, _ = fmt.Fprintf(digest, "%d:%s", len(part), part) // the length separates the parts unambiguously
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}

// directClient is the client id of a caller whose bearer token is one of the site's own.
const directClient = "direct"

// IsOwnToken reports whether a pasted text or the value of a header, once unwrapped, begins like a
// token, code or client secret of this server. Such a text is never sent to the site.
func IsOwnToken(text string) bool {
	text = credential.UnwrapToken(text)
	_, own := tokenKinds[text[:min(len(text), len(ClientSecretPrefix))]]
	return own
}

// DirectID returns the grant id of a caller who has a token of the site instead of a grant.
func DirectID(token Fingerprint) string { return directClient + "/" + hex.EncodeToString(token[:8]) }

// DirectCaller returns the caller who sends a token of the site to a server, with all scopes that
// the token may grant there. It refuses with InvalidToken when there are none.
func (s *Settings) DirectCaller(token Fingerprint, person Principal, at Resource) (Caller, error) {
	scopes := s.ceiling(person, at).Intersect(s.ScopesOf(at).Known())
	if scopes.Empty() {
		return Caller{}, refuseToken("B10", "a token of the site that may grant no scope")
	}
	return Caller{
		Grant:   DirectID(token),
		Client:  RestoreClientID(directClient),
		Subject: person.Subject,
		Account: person.Name,
		Roles:   person.Roles,
		Scopes:  scopes,
	}, nil
}

// IsDirect reports whether the caller has sent a token of the site.
func (c Caller) IsDirect() bool { return c.Client.String() == directClient }

// RefuseDirectToken refuses a token that the site does not know.
func RefuseDirectToken() error { return refuseToken("G22", "neither ours nor known to the site") }
