package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// mcpServers holds the protected MCP servers: the demo site's, or one for each upstream.
type mcpServers []*bootstrap.MCPServer

func (s *Service) newServers(config Config) (servers mcpServers, err error) {
	common := []bootstrap.MCPOption{
		bootstrap.WithAllowedOrigins(config.AllowedOrigins...), bootstrap.WithAllowedHosts(config.AllowedHosts...),
		bootstrap.WithMaxRequestBody(config.MaxRequestBody),
	}
	if !config.IsGateway() {
		options := slices.Concat(s.busOptions(), common, []bootstrap.MCPOption{bootstrap.WithOAuth(s.Authz), bootstrap.WithToolPolicy(s.Site.MayCall)})
		return mcpServers{bootstrap.NewMCPServer(s.Site.MCPServer(bootstrap.CallerOf), options...)}, nil
	}
	g := config.Gateway
	needs, known := g.toolScopes(oauth.NewScopes(config.WithDefaults().DefaultScopes...)), s.Authz.Resources()
	for i, address := range g.Upstreams {
		options := append(slices.Clone(common), bootstrap.WithOAuth(s.Authz), bootstrap.WithResource(known[i].Resource.String()), bootstrap.WithToolScopes(needs))
		g.URL, g.Reach, g.Logger = address.URL, config.reach(), config.Logger
		server, err := bootstrap.NewGateway(g.Upstream, options...)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// Register mounts every server.
func (all mcpServers) Register(site *echo.Echo) error {
	for _, server := range all {
		if err := server.Register(site); err != nil {
			return err
		}
	}
	return nil
}

// Open counts the open streams and sessions of all servers.
func (all mcpServers) Open() (streams, sessions int) {
	for _, server := range all {
		itsStreams, itsSessions := server.Open()
		streams, sessions = streams+itsStreams, sessions+itsSessions
	}
	return streams, sessions
}

// Drain ends every open stream.
func (all mcpServers) Drain() {
	for _, server := range all {
		server.Drain()
	}
}

// greeting is the text of the page at "/".
func (s *Service) greeting() string {
	var text strings.Builder
	for _, server := range s.Authz.Resources() {
		fmt.Fprintf(&text, "Connect an MCP client to %s\n", server.Resource)
	}
	return text.String()
}
