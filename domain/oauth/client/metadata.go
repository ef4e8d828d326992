package client

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

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
	algorithm      string   // the only one with which the client signs; "" means any of AssertionAlgorithms
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
	claimedID, _ := claimed.(string)
	switch {
	case !named && !r.config.AllowDocumentsWithoutClientID:
		return nil, invalidDocument("C23", "the document has no client_id")
	case named && claimedID != id.String() && claimedID != id.Published().String():
		return nil, invalidDocument("C23", "the document's client_id is not the URL that it was fetched from",
			fmt.Errorf("it is %.100q, fetched was %.100q", claimedID, id))
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
	if d["self_registered"] == any(true) { // another Pasteport publishes this for a client that it does not know
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

// PublishedMethod returns the AuthMethod of a client that registered itself or is hosted, by its
// name in RFC 7591 §2.
func (m *Metadata) PublishedMethod() oauth.AuthMethod {
	if m.AuthMethod == oauth.SealedClientID {
		return oauth.PublicClient
	}
	return m.AuthMethod
}

// members is a decoded JSON object. Its methods check one member each.
type members map[string]any

func invalidDocument(rule, why string, causes ...error) error {
	return oauth.Refuse(oauth.InvalidClientDocument, rule, why, causes...)
}

func (d members) name() (string, error) {
	claimed, present := d["client_name"]
	if !present {
		return "", invalidDocument("C24", "the document has no client_name")
	}
	name, ok := claimed.(string)
	if !ok || strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxName ||
		strings.ContainsRune(name, 0) {
		return "", invalidDocument("C24",
			"the document's client_name is not a text, is blank, has more than 200 characters or holds NUL")
	}
	return name, nil
}

func (d members) redirects(privateSchemes []string) (usable []oauth.RedirectURI, ignored int, err error) {
	published, present, ok := d.list("redirect_uris")
	if !present || !ok || len(published) == 0 || len(published) > maxRedirectURIs {
		return nil, 0, invalidDocument("C25", "the document's redirect_uris is not a list of 1 to 50 strings")
	}
	for _, raw := range published {
		if len(raw) > maxRedirectURILength {
			return nil, 0, invalidDocument("C25", "the document has a redirect_uri of more than 2048 bytes")
		}
		target, err := parseRedirectURI(raw, privateSchemes)
		if err != nil || hasResponseParameter(raw) {
			ignored++
			continue
		}
		usable = append(usable, target)
	}
	if len(usable) == 0 {
		return nil, ignored, invalidDocument("C27", "the document has no redirect_uri that can be used here")
	}
	return usable, ignored, nil
}

// hasResponseParameter reports whether the query of the URI has a parameter that our response would
// repeat.
func hasResponseParameter(raw string) bool {
	_, query, _ := strings.Cut(raw, "?")
	return slices.ContainsFunc(strings.Split(query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(name); err == nil {
			name = decoded
		}
		return slices.Contains([]string{"code", "state", "iss", "error", "error_description", "error_uri"}, name)
	})
}

func (d members) checkSecrets() error {
	for _, name := range []string{"client_secret", "client_secret_expires_at"} {
		if _, present := d[name]; present {
			return invalidDocument("C28", "the document holds a client_secret, which would be public")
		}
	}
	return nil
}

// checkKeys checks the keys in the document, or that jwks_uri is an https URL. It does not check
// the other links of the document, which this server neither shows nor fetches.
func (d members) checkKeys() error {
	inline, isInline := d["jwks"]
	address, isLink := d["jwks_uri"]
	switch {
	case isInline && isLink:
		return invalidDocument("C31", "the document has both jwks and jwks_uri")
	case isInline:
		set, _ := inline.(map[string]any)
		_, err := NewKeySet(set)
		return err
	case !isLink:
		return nil
	}
	link, _ := address.(string)
	rest, isHTTPS := strings.CutPrefix(link, "https://")
	authority, _, _ := strings.Cut(rest, "/")
	if !isHTTPS || strings.Trim(authority, "?#:@") != authority || authority == "" {
		return invalidDocument("C33", "the document's jwks_uri is not an https URL")
	}
	return nil
}

// checkFlow refuses a client that cannot use the flow and the protection of this server.
func (d members) checkFlow() error {
	for member, needed := range map[string]string{"grant_types": "authorization_code", "response_types": "code"} {
		values, present, ok := d.list(member)
		if present && (!ok || !slices.Contains(values, needed)) {
			return invalidDocument("C32", "the document rules out the authorization code flow")
		}
	}
	for _, demand := range []string{"dpop_bound_access_tokens", "require_pushed_authorization_requests",
		"tls_client_certificate_bound_access_tokens"} {
		if d[demand] == any(true) {
			return oauth.Refuse(oauth.UnsupportedClient, "C34",
				"the client demands a protection that this server does not offer")
		}
	}
	return nil
}

// refresh returns Client.MayRefresh and Client.DeclaresRefresh.
func (d members) refresh() (may, declares bool) {
	grants, declared, _ := d.list("grant_types")
	declares = slices.Contains(grants, "refresh_token")
	return declares || !declared, declares
}

// list returns a member that has to be a list of strings. ok is false when it is something else.
func (d members) list(member string) (values []string, present, ok bool) {
	value, present := d[member]
	if !present {
		return nil, false, true
	}
	entries, ok := value.([]any)
	if !ok {
		return nil, true, false
	}
	for _, entry := range entries {
		text, isText := entry.(string)
		if !isText {
			return nil, true, false
		}
		values = append(values, text)
	}
	return values, true, true
}
