package oauth

import (
	"encoding/hex"

	"github.com/pasteport/pasteport/domain/credential"
)

// directClient is the client of a caller whose bearer token is one of the site's own.
const directClient = "direct"

// IsOwnToken reports whether a pasted text or the value of a header begins, once it is unwrapped,
// as a token, code or client secret of this server does. Such a text is never sent to the site.
func IsOwnToken(text string) bool {
	text = credential.UnwrapToken(text)
	_, own := tokenKinds[text[:min(len(text), len(ClientSecretPrefix))]]
	return own
}

// DirectID stands for the grant of a caller with a token of the site.
func DirectID(token Fingerprint) string { return directClient + "/" + hex.EncodeToString(token[:8]) }

// DirectCaller returns the caller of a server with a token of the site, who has what the token may
// grant there. It refuses with InvalidToken when that is nothing.
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
