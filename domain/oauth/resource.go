package oauth

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/uri"
)

// Resource is the canonical URI of a protected MCP server (RFC 8707). Every token is bound to one.
type Resource struct{ canonical string }

// NewResource returns the resource of a configured URI, which Config has validated.
func NewResource(canonical string) Resource { return Resource{canonical} }

// String returns the exact configured URI.
func (r Resource) String() string { return r.canonical }

// accepts checks the resource parameters of a request, which may have none: each must name this
// resource, or accepts refuses with InvalidTarget.
func (r Resource) accepts(requested []string) error {
	for _, address := range requested {
		if !strings.Contains(address, "://") || strings.Contains(address, "#") || !uri.Printable(address) {
			return Refuse(InvalidTarget, "A29", "the resource is not an absolute URI without a fragment")
		}
		sent := address
		if !strings.Contains(r.canonical, "?") { // a query is then the client's own addition
			sent, _, _ = strings.Cut(address, "?")
		}
		if comparableForm(sent) != comparableForm(r.canonical) {
			return refuseResource(address, r.canonical)
		}
	}
	return nil
}

// comparableForm lower-cases scheme and host, and drops the default port of the scheme and one
// trailing slash.
func comparableForm(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
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

// messageSuffix follows the resource in the path of the message endpoint (HTTP with SSE).
const messageSuffix = "/message"

// ProtectedServer configures an additional MCP server under the same issuer. A zero field has the
// default in its comment.
type ProtectedServer struct {
	Resource string         // its MCP endpoint
	Name     string         // shown to people; the issuer's host, or the name of the site on its pages
	Verifier BearerVerifier // verifies the tokens that are pasted for it; Config.Verifier

	Scopes        []Scope  // Config.Scopes
	DefaultScopes []string // the first of Scopes; Config.DefaultScopes if Scopes is empty too

	// Secret lets an MCP server elsewhere ask whether a token is valid there (RFC 7662): 32 random
	// letters and digits or more. Servers of this process need none.
	Secret string
}

// ProtectedResource is an MCP server for which tokens are issued.
type ProtectedResource struct {
	Resource Resource
	Name     string
	Scopes   ScopeCatalogue

	secret ClientSecret
}

// NamedAfter returns the Config with this name for each server that has none.
func (c Config) NamedAfter(site string) Config {
	c.ResourceName, c.MoreServers = cmp.Or(c.ResourceName, site), slices.Clone(c.MoreServers)
	for i := range c.MoreServers {
		c.MoreServers[i].Name = cmp.Or(c.MoreServers[i].Name, site)
	}
	return c
}

// ProtectedResources returns Resource, then those of MoreServers. Servers that share a name also
// have their path in it, so that people can tell their connections apart.
func (c Config) ProtectedResources() []ProtectedResource {
	c = c.WithDefaults().NamedAfter(uri.Authority(c.Issuer))
	var all []ProtectedResource
	named := map[string]int{}
	for _, server := range c.servers() {
		scopes, defaults := c.scopesOf(server)
		all = append(all, ProtectedResource{
			Resource: NewResource(server.Resource),
			Name:     server.Name,
			Scopes:   ScopeCatalogue{known: slices.Clone(scopes), defaults: NewScopes(defaults...)},
			secret:   NewClientSecret(server.Secret),
		})
		named[server.Name]++
	}
	for i, resource := range all {
		if named[resource.Name] > 1 {
			all[i].Name += " (" + strings.TrimPrefix(resource.Resource.String(), c.Issuer) + ")"
		}
	}
	return all
}

// servers returns the server of Resource, then MoreServers.
func (c Config) servers() []ProtectedServer {
	first := ProtectedServer{Resource: c.Resource, Name: c.ResourceName, Secret: c.ResourceSecret}
	return append([]ProtectedServer{first}, c.MoreServers...)
}

// scopesOf returns the scopes of a server and its default scopes. Call it after WithDefaults.
func (c Config) scopesOf(server ProtectedServer) (scopes []Scope, defaults []string) {
	scopes, defaults = server.Scopes, server.DefaultScopes
	switch {
	case len(scopes) == 0 && len(defaults) == 0:
		return c.Scopes, c.DefaultScopes
	case len(scopes) == 0:
		scopes = c.Scopes
	case len(defaults) == 0:
		defaults = []string{scopes[0].Name}
	}
	return scopes, defaults
}

// index returns the index of a resource, -1 if it is not configured.
func (s *Settings) index(of Resource) int {
	return slices.IndexFunc(s.Resources, func(known ProtectedResource) bool { return known.Resource == of })
}

// ScopesOf returns the scopes of the server of a resource, or of the first server if the resource
// is not configured any more.
func (s *Settings) ScopesOf(resource Resource) ScopeCatalogue {
	return s.Resources[max(s.index(resource), 0)].Scopes
}

// KnownScopes returns the names of the scopes of all servers, with OfflineAccess.
func (s *Settings) KnownScopes() Scopes {
	all := NewScopes(OfflineAccess)
	for _, known := range s.Resources {
		all = all.With(known.Scopes.Known().Values()...)
	}
	return all
}

// NameOf returns the name of a resource, "" if it is not configured.
func (s *Settings) NameOf(resource Resource) string {
	if i := s.index(resource); i >= 0 {
		return s.Resources[i].Name
	}
	return ""
}

// protects reports whether the resource is configured. Codes and tokens for a resource that was
// removed from the configuration are invalid.
func (s *Settings) protects(resource Resource) bool { return s.index(resource) >= 0 }

// MayHaveIssued reports whether a server with these settings may have issued tokens for the
// resource: it is below the issuer, it or the issuer is on this computer, or a configured resource
// is not below the issuer, so that the address of a resource says nothing.
func (s *Settings) MayHaveIssued(resource Resource) bool {
	isBelow := func(r Resource) bool { return strings.HasPrefix(r.canonical, s.Issuer+"/") }
	return isBelow(resource) || uri.IsLoopback(s.Issuer) || uri.IsLoopback(resource.canonical) ||
		slices.ContainsFunc(s.Resources, func(r ProtectedResource) bool { return !isBelow(r.Resource) })
}

// selectResource returns the resource that all requested URIs name. It refuses with InvalidTarget
// when they name an unknown one, or more than one.
func (s *Settings) selectResource(requested []string) (resource Resource, err error) {
	var protected []string
	for _, known := range s.Resources {
		if err = known.Resource.accepts(requested); err == nil {
			return known.Resource, nil
		}
		protected = append(protected, known.Resource.canonical)
	}
	if RefusalOf(err).Rule == "A30" { // err names the last resource only
		err = refuseResource(strings.Join(requested, " and "), protected...)
	}
	return Resource{}, err
}

func refuseResource(requested string, protected ...string) error {
	return Refuse(InvalidTarget, "A30", "the resource is not the one that this server protects",
		uri.Mismatch(requested, protected...))
}

// checkResources checks each resource, and that no two of them share an address.
func (c Config) checkResources() (found mistakes) {
	if c.Resource != c.Issuer+defaultPath { // otherwise checkURLs has reported the same for the issuer
		found = c.checkResource("Resource", c.Resource)
	}
	taken, first := []string{c.Resource}, comparableForm(c.Resource)
	for _, server := range c.MoreServers {
		address := server.Resource
		found = append(found, c.checkResource("MoreServers", address)...)
		mine := comparableForm(address)
		for _, other := range taken {
			conflict, theirs := "", comparableForm(other)
			switch {
			case mine == theirs:
				conflict = "is the same as"
			case mine == theirs+messageSuffix:
				conflict = "is the message address of"
			case mine+messageSuffix == theirs:
				conflict = "has as its message address"
			}
			if conflict != "" {
				found.add("MoreServers", "%q %s %q: choose another path", uri.WithoutUser(address), conflict,
					uri.WithoutUser(other))
			}
		}
		if site, _ := uri.SplitOrigin(first); first != site && mine == site {
			found.add("MoreServers", "%q has the metadata address that the first server has too: make it Resource",
				uri.WithoutUser(address))
		}
		taken = append(taken, address)
	}
	return found
}

func (c Config) checkResource(field string, address string) []error {
	found := checkURL(field, address, c.AllowLoopbackIssuer)
	path, underIssuer := strings.CutPrefix(address, c.Issuer)
	if underIssuer && strings.HasPrefix(path, "/oauth/") || strings.Contains(address, "/.well-known/") {
		found.add(field, "%q is an address of this server itself: choose another path", uri.WithoutUser(address))
	}
	return found
}
