package client

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pasteport/pasteport/domain/oauth"
)

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

// checkKeys also refuses a jwks_uri that cannot be fetched. Other links are neither shown nor
// fetched, so they are not checked.
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

// refresh reports what the client declares about the grant type refresh_token.
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
