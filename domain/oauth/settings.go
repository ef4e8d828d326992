package oauth

import (
	"maps"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/seal"
)

// Settings is a validated Config with all defaults filled in. Config.Settings returns it.
// GrantChoices begin with the longest, and what is Off is 0.
type Settings struct {
	Config
	Resources []ProtectedResource // at least one; the first is the default for requests without a resource
	Keys      seal.KeyRing

	// The HostFields that identify a credential: those that the verifier verifies and that have a
	// value; nil for the token.
	IdentityFields credential.Fields
}

// withKeys returns a copy with a snapshot of the key ring.
func (s *Settings) withKeys(keys seal.KeyRing) *Settings {
	changed := *s
	changed.Keys = keys
	return &changed
}

// Identity returns what identifies the credential of a person: the token, or the IdentityFields.
// Grants are found by its fingerprint. It leaves out fields that are not verified, because a
// changed value would hide grants and get around limits.
func (s *Settings) Identity(host HostToken) HostToken {
	if len(s.HostFields) == 0 {
		return host
	}
	return HostToken{conceal(s.IdentityFields.Select(host.Values()).Encode())}
}

// CompletedBy returns the old credential with those values of the new one that do not identify it,
// for a verifier that needs all fields.
func (s *Settings) CompletedBy(old, host HostToken) HostToken {
	if len(s.HostFields) == 0 {
		return old
	}
	values := host.Values()
	maps.Copy(values, s.Identity(old).Values())
	return HostToken{conceal(values.Encode())}
}

// Fingerprints returns the fingerprints of the Identity, that under the current server secret
// first.
func (s *Settings) Fingerprints(host HostToken) ([]Fingerprint, error) {
	return s.Keys.Fingerprints(s.Identity(host))
}

// accessTokensUnseal reports whether access tokens can open the host token, to verify it again or
// to send it to an upstream server.
func (s *Settings) accessTokensUnseal() bool { return s.RecheckEvery > 0 || s.HostTokenInUse }

// ceiling returns the scopes of a server that a host token may grant at most.
func (s *Settings) ceiling(p Principal, at Resource) Scopes {
	if p.Scopes == nil {
		return s.ScopesOf(at).defaults.With(OfflineAccess)
	}
	return s.ScopesOf(at).Expand(NewScopes(p.Scopes...)).With(OfflineAccess)
}
