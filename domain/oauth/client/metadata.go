package client

import (
	"cmp"
	"fmt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Metadata is what a client publishes about itself, or has registered. Only its ID is verified; the
// client claims everything else.
type Metadata struct {
	oauth.Client
	IgnoredRedirects int            // how many published redirect URIs cannot be used here
	Keys             KeySet         // in the document
	KeysAt           oauth.ClientID // or the URL at which the client publishes them, fetched like a document
	CheckFailure     error          // why the document could not be fetched again; nil for a fresh one

	redirects      []oauth.RedirectURI
	privateSchemes []string // to which the client may redirect
	algorithm      string   // the only one that the client signs with; "" is any of AssertionAlgorithms
}

const (
	maxName         = 200
	maxRedirectURIs = 50
)

// NewMetadata reads the members of a decoded metadata document that was fetched from id. It refuses
// an invalid document with InvalidClientDocument, and a client that needs an unsupported feature
// with UnsupportedClient.
func (r *Rules) NewMetadata(id oauth.ClientID, document map[string]any) (*Metadata, error) {
	d := members(document)
	claimed, named := d["client_id"]
	own, _ := claimed.(string)
	switch {
	case !named && !r.config.AllowDocumentsWithoutClientID:
		return nil, invalidDocument("C23", "the document has no client_id")
	case named && own != id.String() && own != id.Published().String():
		return nil, invalidDocument("C23", "the document's client_id is not the URL that it was fetched from",
			fmt.Errorf("it is %.100q, fetched was %.100q", own, id))
	}
	name, err := d.name()
	if err != nil {
		return nil, err
	}
	m := &Metadata{privateSchemes: r.config.AllowedPrivateSchemes}
	if m.redirects, m.IgnoredRedirects, err = d.redirects(m.privateSchemes); err != nil {
		return nil, err
	}
	if err := cmp.Or(d.checkSecrets(), d.checkKeys(), d.checkFlow()); err != nil {
		return nil, err
	}
	if d["self_registered"] == any(true) { // another server publishes it without knowing the client
		return nil, oauth.Refuse(oauth.LostRegistration, "L2",
			"the document is one of a client that registered itself at its host, so the host does not vouch for it")
	}
	if err := m.readAuthentication(d, r); err != nil {
		return nil, err
	}
	m.ID, m.Name, m.DeclaresID = id, name, named
	m.MayRefresh, m.DeclaresRefresh = d.refresh()
	return m, nil
}

// RedirectURIs returns the published redirect URIs that can be used here.
func (m *Metadata) RedirectURIs() []string {
	uris := make([]string, 0, len(m.redirects))
	for _, target := range m.redirects {
		uris = append(uris, target.String())
	}
	return uris
}

// PublishedMethod returns the AuthMethod by its name of RFC 7591 §2.
func (m *Metadata) PublishedMethod() oauth.AuthMethod {
	if m.AuthMethod == oauth.SealedClientID {
		return oauth.PublicClient
	}
	return m.AuthMethod
}
