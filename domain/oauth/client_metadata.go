package oauth

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ClientMetadata is the metadata document of a client (CIMD). Only its URL is verified; the client
// claims everything else.
type ClientMetadata struct {
	id               ClientID
	name             string
	redirects        []RedirectURI
	mayRefresh       bool
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
	PrivateKeyJWT                 bool          // offers private_key_jwt
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
	named, err := document.checkIdentity(id, rules.AllowDocumentsWithoutClientID)
	if err != nil {
		return nil, err
	}
	name, err := document.name()
	if err != nil {
		return nil, err
	}
	redirects, ignored, err := document.redirects(rules.AllowedPrivateSchemes)
	if err != nil {
		return nil, err
	}
	for _, check := range []func() error{document.checkSecrets, document.checkKeys, document.checkKeysLink,
		document.checkFlow, document.checkDemands, document.checkPublisher} {
		if err := check(); err != nil {
			return nil, err
		}
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
		mayRefresh:       document.mayRefresh(),
	}, nil
}

// ID returns the client_id that the document was fetched from.
func (m *ClientMetadata) ID() ClientID { return m.id }

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

// MayRefresh reports whether the client may be granted offline_access.
func (m *ClientMetadata) MayRefresh() bool { return m.mayRefresh }

// privateSchemes returns the private-use schemes to which the client may redirect.
func (m *ClientMetadata) privateSchemes(rules ClientMetadataRules) []string {
	if m.authentication.method != SealedClientID {
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
	target, err := ParseRedirectURI(requested, m.privateSchemes(rules))
	if err != nil {
		return RedirectURI{}, err
	}
	if !slices.ContainsFunc(m.redirects, target.Matches) {
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

// clientDocument is a decoded JSON object. Its methods check one member each.
type clientDocument map[string]any

func invalidDocument(rule, why string) error { return Refuse(InvalidClientDocument, rule, why) }

func (d clientDocument) checkIdentity(id ClientID, optional bool) (named bool, err error) {
	claimed, present := d["client_id"]
	switch {
	case !present && optional:
		return false, nil
	case !present:
		return false, invalidDocument("C23", "the document has no client_id")
	case claimed != any(id.String()):
		return false, invalidDocument("C23", "the document's client_id is not the URL that it was fetched from")
	}
	return true, nil
}

func (d clientDocument) name() (string, error) {
	name, ok := d["client_name"].(string)
	if !ok || strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxClientName ||
		strings.ContainsRune(name, 0) {
		return "", invalidDocument("C24", "the document's client_name is missing, blank, too long or holds NUL")
	}
	return name, nil
}

func (d clientDocument) redirects(privateSchemes []string) (usable []RedirectURI, ignored int, err error) {
	published, present, ok := d.list("redirect_uris")
	if !present || !ok || len(published) == 0 || len(published) > maxRedirectURIs {
		return nil, 0, invalidDocument("C25", "the document's redirect_uris is no list of 1 to 50 strings")
	}
	for _, raw := range published {
		if len(raw) > maxRedirectURILength {
			return nil, 0, invalidDocument("C25", "the document has a redirect_uri of more than 2048 bytes")
		}
		uri, err := ParseRedirectURI(raw, privateSchemes)
		if err != nil || hasResponseParameter(raw) {
			ignored++
			continue
		}
		usable = append(usable, uri)
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
		return slices.Contains([]string{"code", "state", "iss", "error", "error_description", "error_uri"},
			unescape(name))
	})
}

func (d clientDocument) checkSecrets() error {
	for _, name := range []string{"client_secret", "client_secret_expires_at"} {
		if _, present := d[name]; present {
			return invalidDocument("C28", "the document holds a client_secret, which would be public")
		}
	}
	return nil
}

func (d clientDocument) checkKeys() error {
	inline, present := d["jwks"]
	if !present {
		return nil
	}
	if _, both := d["jwks_uri"]; both {
		return invalidDocument("C31", "the document has both jwks and jwks_uri")
	}
	set, _ := inline.(map[string]any)
	_, err := NewKeySet(set)
	return err
}

// checkKeysLink refuses a jwks_uri that cannot be fetched. Other links are neither shown nor
// fetched, so they are not checked.
func (d clientDocument) checkKeysLink() error {
	value, present := d["jwks_uri"]
	if !present {
		return nil
	}
	link, _ := value.(string)
	rest, isHTTPS := strings.CutPrefix(link, httpsPrefix)
	authority, _, _ := strings.Cut(rest, "/")
	if !isHTTPS || strings.Trim(authority, "?#:@") != authority || authority == "" {
		return invalidDocument("C33", "the document's jwks_uri is no https URL")
	}
	return nil
}

func (d clientDocument) checkFlow() error {
	for member, needed := range map[string]string{"grant_types": "authorization_code", "response_types": "code"} {
		values, present, ok := d.list(member)
		if present && (!ok || !slices.Contains(values, needed)) {
			return invalidDocument("C32", "the document rules out the authorization code flow")
		}
	}
	return nil
}

var unsupportedDemands = []string{"dpop_bound_access_tokens", "require_pushed_authorization_requests",
	"tls_client_certificate_bound_access_tokens"}

func (d clientDocument) checkDemands() error {
	if slices.ContainsFunc(unsupportedDemands, func(member string) bool { return d[member] == any(true) }) {
		return Refuse(UnsupportedClient, "C34", "the client demands a protection that this server does not offer")
	}
	return nil
}

func (d clientDocument) mayRefresh() bool {
	grants, declared, _ := d.list("grant_types")
	return !declared || slices.Contains(grants, "refresh_token")
}

// checkPublisher refuses the document of a client that has registered itself at another server,
// which publishes it without knowing the client.
func (d clientDocument) checkPublisher() error {
	if d["self_registered"] == any(true) {
		return invalidDocument("L2",
			"the document is one of a client that registered itself at its host, so the host does not vouch for it")
	}
	return nil
}

// list returns a member that has to be a list of strings. ok is false when it is something else.
func (d clientDocument) list(member string) (values []string, present, ok bool) {
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
