package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

// ResourceServer is an MCP server elsewhere, which asks this one about tokens (RFC 7662).
type ResourceServer struct {
	URL           string   `json:"url" yaml:"url" jsonschema:"URL of the MCP server"`
	Name          string   `json:"name,omitempty" yaml:"name,omitempty" jsonschema:"name of the MCP server on the pages"`
	Scopes        []string `json:"scopes,omitempty" yaml:"scopes,omitempty" jsonschema:"scopes of this server, as in the setting scopes"`
	DefaultScopes []string `json:"default-scopes,omitempty" yaml:"default-scopes,omitempty" jsonschema:"scopes for clients that request none; the first of scopes"`
	Secret        string   `json:"secret" yaml:"secret" jsonschema:"secret of the MCP server, 32 random characters or more, or file: with the path of a file that has it"`
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
	if !strings.HasPrefix(r.Secret, settings.FromFile) {
		r.Secret = settings.Hidden
	}
	return mapping(r), nil
}

// protected returns the server for the oauth.Config, and reads the secret from its file.
func (r ResourceServer) protected() (server oauth.ProtectedServer, err error) {
	server = oauth.ProtectedServer{
		Resource:      r.URL,
		Name:          r.Name,
		Scopes:        make([]oauth.Scope, len(r.Scopes)),
		DefaultScopes: r.DefaultScopes,
		Secret:        r.Secret,
	}
	for i, text := range r.Scopes {
		err = errors.Join(err, server.Scopes[i].UnmarshalText([]byte(text)))
	}
	if path, isFile := strings.CutPrefix(r.Secret, settings.FromFile); isFile {
		secret, unread := settings.ReadSecret(path)
		server.Secret, err = secret, errors.Join(err, unread)
	}
	if r.URL == "" || err == nil && server.Secret == "" {
		err = errors.Join(err, errors.New("it needs a url, and a secret of 32 random characters or more"))
	}
	return server, err
}

// resourceServers makes the first MCP server elsewhere the Resource of the config, and adds the
// others to MoreServers. It reports every mistake in their mappings.
func (c Config) resourceServers(config oauth.Config) (oauth.Config, error) {
	var mistakes []error
	common := config.WithDefaults()
	for i, server := range c.ResourceServers {
		protected, err := server.protected()
		if err != nil {
			mistakes = append(mistakes, oauth.NewMistake("resource-servers", ": number %d: %w", i+1, err))
		}
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
	return config.NamedAfter(c.Appearance.Name), errors.Join(mistakes...)
}

// nameServers changes the field of mistakes to resource-servers if that setting fills in the field.
func nameServers(err error) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand, because each branch is a mistake
	case *oauth.Mistake:
		if slices.Contains([]string{"Resource", "MoreServers", "Secret"}, e.Field) {
			e.Field = "resource-servers"
		}
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			nameServers(branch)
		}
	}
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
		site, path := uri.SplitOrigin(server.Resource.String())
		_, unwritten := fmt.Fprintf(w, "\n# %s has to answer GET /.well-known/oauth-protected-resource%s with:\n# %s\n",
			site, path, document)
		err = errors.Join(err, wrong, unwritten)
	}
	return err
}
