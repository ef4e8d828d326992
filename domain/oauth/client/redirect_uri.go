package client

import (
	"errors"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

const maxRedirectURILength = 2048

// forbiddenSchemes could run scripts, read files or open other protocols. No setting allows them.
var forbiddenSchemes = []string{"javascript", "data", "vbscript", "file", "blob", "about", "mailto", "ws", "wss", "ftp",
	"filesystem", "view-source"}

// parseRedirectURI accepts https, http to a loopback host, and the given private-use schemes. It
// refuses all else with InvalidRequest.
func parseRedirectURI(raw string, privateSchemes []string) (oauth.RedirectURI, error) {
	scheme, _, found := strings.Cut(raw, ":")
	authority := uri.Authority(raw)
	_, realPort := uri.WithoutPort(raw)
	switch {
	case raw == "", len(raw) > maxRedirectURILength, !uri.Printable(raw), strings.ContainsAny(raw, `#\`):
		return oauth.RedirectURI{},
			oauth.Refuse(oauth.InvalidRequest, "A11", "the redirect_uri is not an absolute URI without a fragment")
	case !found, strings.Contains(authority, "@"), !realPort:
		return oauth.RedirectURI{}, oauth.Refuse(oauth.InvalidRequest, "A11",
			"the redirect_uri is relative, names a user or has no possible port")
	case scheme == "https" && uri.HostOf(authority) != "" && !strings.Contains(authority, "%"),
		scheme == "http" && uri.IsLoopback(raw),
		slices.Contains(privateSchemes, scheme) && !slices.Contains(forbiddenSchemes, scheme):
		return oauth.RestoreRedirectURI(raw), nil
	}
	return oauth.RedirectURI{}, oauth.Refuse(oauth.InvalidRequest, "A14",
		"the redirect_uri is neither https nor on this computer", errors.New(uri.Abbreviated(raw)))
}

// matches reports whether the target equals a registered URI byte for byte, except for the port of
// a loopback URI (RFC 8252 §7.3).
func matches(target, registered oauth.RedirectURI) bool {
	if !registered.Loopback() {
		return target == registered
	}
	wanted, ok := uri.WithoutPort(target.String())
	allowed, _ := uri.WithoutPort(registered.String())
	return ok && wanted == allowed
}

// RedirectURI returns the verified target of a request: for an empty one, the only redirect URI of
// the client unless it is loopback. It refuses with InvalidRequest or UnregisteredRedirect.
func (m *Metadata) RedirectURI(requested string) (oauth.RedirectURI, error) {
	if requested == "" {
		if len(m.redirects) != 1 || m.redirects[0].Loopback() {
			return oauth.RedirectURI{}, oauth.Refuse(oauth.InvalidRequest, "A10", "the redirect_uri is missing")
		}
		return m.redirects[0], nil
	}
	target, err := parseRedirectURI(requested, m.privateSchemes)
	if err != nil {
		return oauth.RedirectURI{}, err
	}
	if !slices.ContainsFunc(m.redirects, func(one oauth.RedirectURI) bool { return matches(target, one) }) {
		return oauth.RedirectURI{}, oauth.Refuse(oauth.UnregisteredRedirect, "A12, A13",
			"the client did not publish or register this redirect_uri", uri.Mismatch(requested, m.RedirectURIs()...))
	}
	return target, nil
}

// LacksRedirectURI reports whether the document does not list the requested redirect URI, so that
// fetching it again may help.
func (m *Metadata) LacksRedirectURI(requested string) bool {
	_, err := m.RedirectURI(requested)
	kind, _ := oauth.KindOf(err)
	return kind == oauth.UnregisteredRedirect
}
