package oauth

import "strings"

// Resource is the canonical URI of a protected MCP server, to which every token is bound (RFC 8707).
type Resource struct{ canonical string }

// NewResource takes the configured URI, which Config has checked.
func NewResource(canonical string) Resource { return Resource{canonical} }

// String returns the exact configured URI.
func (r Resource) String() string { return r.canonical }

// Accepts checks the resource parameters of a request (A28-A31, D17): each must name this resource, none at all is fine.
// It refuses with InvalidTarget.
func (r Resource) Accepts(requested []string) error {
	for _, uri := range requested {
		if !strings.Contains(uri, "://") || strings.Contains(uri, "#") || !printable(uri) {
			return Refuse(InvalidTarget, "A29", "the resource is not an absolute URI without a fragment")
		}
		if comparableForm(uri) != comparableForm(r.canonical) {
			return Refuse(InvalidTarget, "A30", "the resource is not the one that this server protects")
		}
	}
	return nil
}

// comparableForm lower-cases scheme and host, drops the scheme's default port and one trailing slash; all else stays raw (A30).
func comparableForm(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	scheme, authority := strings.ToLower(scheme), strings.ToLower(rest[:end])
	switch scheme {
	case "https":
		authority = strings.TrimSuffix(authority, ":443")
	case "http":
		authority = strings.TrimSuffix(authority, ":80")
	}
	return scheme + "://" + authority + strings.TrimSuffix(rest[end:], "/")
}
