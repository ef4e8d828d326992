package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/pasteport/pasteport/domain/uri"
)

// minResourceSecret is the minimum length of ProtectedServer.Secret, in characters.
const minResourceSecret = 32

// checkResourceSecrets refuses secrets that can be guessed, and those with characters that a client
// has to encode in a Basic header, because not every one does.
func (c Config) checkResourceSecrets() (found mistakes) {
	var taken []string
	for _, server := range c.servers() {
		secret := server.Secret
		if secret == "" {
			continue
		}
		switch {
		case len(secret) < minResourceSecret:
			found.add("Secret", "of %s has %d characters: give %d random ones or more",
				uri.WithoutUser(server.Resource), len(secret), minResourceSecret)
		case strings.ContainsFunc(secret, isUnsafeInBasic):
			found.add("Secret", "of %s has a colon, a percent sign, a plus sign, white space or a character outside "+
				"ASCII: use letters and digits", uri.WithoutUser(server.Resource))
		case slices.Contains(taken, secret):
			found.add("Secret", "of %s is that of another server: each needs its own, or one could ask about the "+
				"tokens of the other", uri.WithoutUser(server.Resource))
		}
		taken = append(taken, secret)
	}
	return found
}

func isUnsafeInBasic(r rune) bool {
	return strings.ContainsRune(":%+", r) || r <= ' ' || r > unicode.MaxASCII
}

// Introspects reports whether the server of this resource may ask about tokens.
func (r ProtectedResource) Introspects() bool { return r.secret != ClientSecret{} }

// Introspects reports whether the server of any resource may ask about tokens.
func (s *Settings) Introspects() bool {
	return slices.ContainsFunc(s.Resources, ProtectedResource.Introspects)
}

// CheckResourceServer returns the resource of an MCP server that asks about a token, and proves
// itself with the URI of the resource and its secret. It refuses others with InvalidClient.
func (s *Settings) CheckResourceServer(name string, secret ClientSecret) (Resource, error) {
	i := s.index(NewResource(name))
	if i < 0 || !s.Resources[i].Introspects() {
		return Resource{}, RefuseClient(errors.New("no MCP server of this name may introspect tokens"))
	}
	known := s.Resources[i]
	right, presented := sha256.Sum256([]byte(known.secret.Reveal())), sha256.Sum256([]byte(secret.Reveal()))
	if subtle.ConstantTimeCompare(right[:], presented[:]) == 0 {
		return Resource{}, RefuseClient(errors.New("the secret of " + known.Resource.String() + " is wrong"))
	}
	return known.Resource, nil
}
