package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// ResourceServer is an MCP server elsewhere, which asks this one about tokens (RFC 7662).
type ResourceServer struct {
	URL    string        `json:"url" yaml:"url" jsonschema:"URL of the MCP server"`
	Name   string        `json:"name,omitempty" yaml:"name,omitempty" jsonschema:"name of the MCP server on the pages"`
	Scopes []oauth.Scope `json:"scopes,omitempty" yaml:"scopes,omitempty" jsonschema:"scopes of this server, as in the setting scopes"`
	Secret string        `json:"secret" yaml:"secret" jsonschema:"secret of the MCP server, 32 characters or more, or file: with the path of a file that has it"`
}

// UnmarshalText reads "URL = secret".
func (r *ResourceServer) UnmarshalText(text []byte) error {
	url, secret, found := strings.Cut(string(text), " = ")
	if !found {
		return errors.New("it has no secret")
	}
	*r = ResourceServer{URL: strings.TrimSpace(url), Secret: strings.TrimSpace(secret)}
	return nil
}

// MarshalYAML hides a secret, but not the path of its file.
func (r ResourceServer) MarshalYAML() (any, error) {
	type mapping ResourceServer
	if _, isFile := strings.CutPrefix(r.Secret, settings.FromFile); !isFile {
		r.Secret = settings.Hidden
	}
	return mapping(r), nil
}

// protected returns the server for the Config, with the secret of its file.
func (r ResourceServer) protected() (server oauth.ProtectedServer, err error) {
	server = oauth.ProtectedServer{
		Resource: r.URL,
		Name:     r.Name,
		Scopes:   r.Scopes,
		Secret:   r.Secret,
	}
	if path, isFile := strings.CutPrefix(r.Secret, settings.FromFile); isFile {
		server.Secret, err = settings.ReadSecret(path)
	}
	if err == nil && server.Secret == "" {
		err = errors.New("is empty: give the MCP server one of 32 random characters")
	}
	if err != nil {
		err = oauth.NewMistake("resource-servers", ": the secret of %s %w", r.URL, err)
	}
	return server, err
}

// WriteMetadata prints the document that each MCP server elsewhere has to publish (RFC 9728).
func (c Config) WriteMetadata(w io.Writer) error {
	config, err := c.resourceServers(c.authorization())
	for _, server := range config.ProtectedResources() {
		if !server.Introspects() {
			continue
		}
		document, wrong := json.Marshal(guard.NewResourceMetadata(guard.Options{
			Resource:     server.Resource,
			ResourceName: server.Name,
			Issuer:       c.Issuer,
			Scopes:       server.Scopes,
			Links:        c.Links,
		}))
		site, path := oauth.SplitOrigin(server.Resource.String())
		_, unwritten := fmt.Fprintf(w, "\n# %s has to answer GET /.well-known/oauth-protected-resource%s with:\n# %s\n",
			site, path, document)
		err = errors.Join(err, wrong, unwritten)
	}
	return err
}

// checkServers reports settings that have no effect for MCP servers elsewhere.
func (c Config) checkServers() error {
	if !c.IsAlone() {
		return nil
	}
	return unused("resource-servers is set too, whose servers are elsewhere: leave one of them out",
		configured{"upstream", c.IsGateway()}, configured{"resource", c.Resource != ""},
		configured{"resource-name", c.ResourceName != ""}, configured{"accept-host-tokens", c.AcceptHostTokens})
}

// resourceServers adds the MCP servers elsewhere to the config, with every mistake in their
// secrets.
func (c Config) resourceServers(config oauth.Config) (oauth.Config, error) {
	var mistakes []error
	common := config.WithDefaults()
	for i, server := range c.ResourceServers {
		protected, err := server.protected()
		mistakes = append(mistakes, err)
		if len(protected.Scopes) == 0 {
			protected.Scopes, protected.DefaultScopes = common.Scopes, common.DefaultScopes
		}
		if i > 0 {
			config.MoreServers = append(config.MoreServers, protected)
			continue
		}
		config.Resource, config.ResourceName = protected.Resource, protected.Name
		config.ResourceSecret = protected.Secret
		config.Scopes, config.DefaultScopes = protected.Scopes, protected.DefaultScopes
	}
	return config, errors.Join(mistakes...)
}
