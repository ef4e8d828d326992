package oauth

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// ClientMetadata is the metadata document of a client (CIMD). Only its URL is verified; the client
// claims everything else.
type ClientMetadata struct {
	id               ClientID
	name             string
	redirects        []RedirectURI
	refreshing       refreshing
	declaresClientID bool
	ignoredEntries   int
	authentication   clientAuthentication
	checkedAt        time.Time // of a document that cannot be checked now, see WithFailedCheck
	checkFailure     error
}

// ClientMetadataRules are the rules for metadata documents that an operator may relax.
type ClientMetadataRules struct {
	AllowedPrivateSchemes         []string      // exact, lower case; none by default
	AllowDocumentsWithoutClientID bool          // accepts the bare {client_name, redirect_uris} document
	KeySets                       ClientIDRules // for the URL at which a client publishes its keys
}

const (
	maxClientName   = 200
	maxRedirectURIs = 50
)

// NewClientMetadata reads the members of a decoded metadata document that was fetched from id. It
// refuses an invalid document with InvalidClientDocument, and a client that needs an unsupported
// feature with UnsupportedClient.
func NewClientMetadata(id ClientID, members map[string]any, rules ClientMetadataRules) (*ClientMetadata, error) {
	document := clientDocument(members)
	claimed, named := document["client_id"]
	own, _ := claimed.(string)
	switch {
	case !named && !rules.AllowDocumentsWithoutClientID:
		return nil, invalidDocument("C23", "the document has no client_id")
	case named && own != id.raw && own != id.Published().raw:
		return nil, invalidDocument("C23", "the document's client_id is not the URL that it was fetched from",
			fmt.Errorf("it is %.100q, fetched was %.100q", own, id.raw))
	}
	name, err := document.name()
	if err != nil {
		return nil, err
	}
	redirects, ignored, err := document.redirects(rules.AllowedPrivateSchemes)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(document.checkSecrets(), document.checkKeys(), document.checkFlow()); err != nil {
		return nil, err
	}
	if document["self_registered"] == any(true) { // another server publishes it without knowing the client
		return nil, Refuse(LostRegistration, "L2",
			"the document is one of a client that registered itself at its host, so the host does not vouch for it")
	}
	proof, err := document.authentication(rules)
	if err != nil {
		return nil, err
	}
	return &ClientMetadata{
		id:               id,
		name:             name,
		redirects:        redirects,
		declaresClientID: named,
		ignoredEntries:   ignored,
		authentication:   proof,
		refreshing:       document.refreshing(),
	}, nil
}

// ID returns the client_id that the document was fetched from.
func (m *ClientMetadata) ID() ClientID { return m.id }

// RequestedAs returns the same client under the id that it has sent, nil for nil.
func (m *ClientMetadata) RequestedAs(id ClientID) *ClientMetadata {
	if m == nil {
		return nil
	}
	requested := *m
	requested.id = id
	return &requested
}

// Name returns the name that the client claims.
func (m *ClientMetadata) Name() string { return m.name }

// DeclaresClientID reports whether the document has its own client_id. Without it a client could
// use the document of another.
func (m *ClientMetadata) DeclaresClientID() bool { return m.declaresClientID }

// IgnoredRedirects returns how many published redirect URIs cannot be used here.
func (m *ClientMetadata) IgnoredRedirects() int { return m.ignoredEntries }

// WithFailedCheck returns the document as one that could not be fetched again, with the time of the
// last successful check and the reason.
func (m *ClientMetadata) WithFailedCheck(checkedAt time.Time, failure error) *ClientMetadata {
	unchecked := *m
	unchecked.checkedAt, unchecked.checkFailure = checkedAt, failure
	return &unchecked
}

// FailedCheck returns why the document could not be fetched again, and when it was last checked.
// failure is nil for a document that is fresh.
func (m *ClientMetadata) FailedCheck() (checkedAt time.Time, failure error) {
	return m.checkedAt, m.checkFailure
}

// RedirectURIs returns the published redirect URIs that can be used here.
func (m *ClientMetadata) RedirectURIs() []string {
	uris := make([]string, 0, len(m.redirects))
	for _, uri := range m.redirects {
		uris = append(uris, uri.raw)
	}
	return uris
}

// AuthMethod returns how the client authenticates, by a name of RFC 7591 §2.
func (m *ClientMetadata) AuthMethod() AuthMethod {
	if m.authentication.method == SealedClientID {
		return PublicClient
	}
	return m.authentication.method
}

// MayRefresh reports whether the client may be granted offline_access.
func (m *ClientMetadata) MayRefresh() bool { return m.refreshing != refreshExcluded }

// privateSchemes returns the private-use schemes to which the client may redirect.
func (m *ClientMetadata) privateSchemes(rules ClientMetadataRules) []string {
	if !m.authentication.method.selfRegistered() {
		return rules.AllowedPrivateSchemes
	}
	return slices.Concat(rules.AllowedPrivateSchemes, knownAppSchemes)
}

// Keys returns the keys of the client, or the URL at which it publishes them.
func (m *ClientMetadata) Keys() (held KeySet, at ClientID) {
	return m.authentication.keys, m.authentication.keysAt
}

// RedirectURI returns the verified target of a request; it refuses with InvalidRequest or
// UnregisteredRedirect.
func (m *ClientMetadata) RedirectURI(requested string, rules ClientMetadataRules) (RedirectURI, error) {
	if requested == "" {
		if len(m.redirects) != 1 || m.redirects[0].Loopback() {
			return RedirectURI{}, Refuse(InvalidRequest, "A10", "the redirect_uri is missing")
		}
		return m.redirects[0], nil
	}
	target, err := parseRedirectURI(requested, m.privateSchemes(rules))
	if err != nil {
		return RedirectURI{}, err
	}
	if !slices.ContainsFunc(m.redirects, target.matches) {
		return RedirectURI{}, Refuse(UnregisteredRedirect, "A12, A13",
			"the client did not publish or register this redirect_uri",
			mismatch(requested, m.RedirectURIs()...))
	}
	return target, nil
}

// LacksRedirectURI reports whether the document does not list the requested redirect URI, so that
// fetching it again may help.
func (m *ClientMetadata) LacksRedirectURI(requested string, rules ClientMetadataRules) bool {
	_, err := m.RedirectURI(requested, rules)
	kind, _ := KindOf(err)
	return kind == UnregisteredRedirect
}
