package mcp

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/wellknown"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// resourceMetadata is the metadata document of RFC 9728. It depends only on the configuration.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name,omitempty"`
}

func newMetadata(o Options) *wellknown.Document {
	return wellknown.New(trace.ResourceMetadata, resourceMetadata{
		Resource: o.Resource.String(), AuthorizationServers: []string{o.Issuer},
		ScopesSupported: o.Scopes.Known().Values(),
		BearerMethods:   []string{"header"}, ResourceName: o.ResourceName,
	})
}

// mountTrailingSlash mounts the endpoint with a trailing slash too, because people type both. The
// metadata for it names the resource with the slash, because clients compare it with the URL that
// they were given (RFC 9728 §3.3). Tokens are for the resource without it.
func (s *Server) mountTrailingSlash(e *echo.Echo, methods []string) {
	o := s.options
	o.Resource = oauth.NewResource(s.options.Resource.String() + "/")
	newMetadata(o).Mount(e, wellKnown+s.path+"/", o.Follow)
	e.Match(methods, s.path+"/", s.withSlashInChallenge(s.protect(s.endpoint)))
}

// withSlashInChallenge makes challenges name the metadata for the URL with a trailing slash.
func (s *Server) withSlashInChallenge(next echo.HandlerFunc) echo.HandlerFunc {
	const name = "WWW-Authenticate"
	return func(c echo.Context) error {
		header := c.Response().Header()
		c.Response().Before(func() {
			if challenge := header.Get(name); challenge != "" {
				header.Set(name, strings.Replace(challenge, s.challenge.metadata+`"`, s.challenge.metadata+`/"`, 1))
			}
		})
		return next(c)
	}
}
