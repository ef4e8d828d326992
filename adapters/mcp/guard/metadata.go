package guard

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/internal/wellknown"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// ResourceMetadata is the metadata document of RFC 9728. It depends only on the configuration.
type ResourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name,omitempty"`
	Documentation        string   `json:"resource_documentation,omitempty"`
	Policy               string   `json:"resource_policy_uri,omitempty"`
	Terms                string   `json:"resource_tos_uri,omitempty"`
}

// NewResourceMetadata returns the document of a resource, for its issuer, scopes, name and links.
func NewResourceMetadata(o Options) ResourceMetadata {
	return ResourceMetadata{
		Resource:             o.Resource.String(),
		AuthorizationServers: []string{o.Issuer},
		ScopesSupported:      o.Scopes.Defaults().Values(), // some clients request all that they see here
		BearerMethods:        []string{"header"},
		ResourceName:         o.ResourceName,
		Documentation:        o.Links.URL(oauth.ResourceDocumentation),
		Policy:               o.Links.URL(oauth.ResourcePolicy),
		Terms:                o.Links.URL(oauth.ResourceTerms),
	}
}

func newMetadata(o Options) *wellknown.Document {
	return wellknown.New(connection.ResourceMetadata, NewResourceMetadata(o))
}

// withSlashInChallenge makes challenges name the metadata for the URL with a trailing slash.
func (g *Guard) withSlashInChallenge(next echo.HandlerFunc) echo.HandlerFunc {
	const name = "WWW-Authenticate"
	return func(c echo.Context) error {
		header := c.Response().Header()
		c.Response().Before(func() {
			if challenge := header.Get(name); challenge != "" {
				header.Set(name, strings.Replace(challenge, g.challenge.metadata+`"`, g.challenge.metadata+`/"`, 1))
			}
		})
		return next(c)
	}
}
