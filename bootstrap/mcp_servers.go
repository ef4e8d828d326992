package bootstrap

import (
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"
)

// mcpServers are what a service protects: the demo site's, or one for each upstream.
type mcpServers []*MCPServer

func (s *Service) newServers(config ServiceConfig) (servers mcpServers, err error) {
	if !config.isGateway() {
		options := append(s.throughBus(), WithOAuth(s.Authz), WithToolPolicy(s.Site.MayCall))
		return mcpServers{NewMCPServer(s.Site.MCPServer(CallerOf), options...)}, nil
	}
	g, settings := config.Gateway, s.Authz.server.Settings()
	for i, address := range g.Upstreams {
		server, err := NewGateway(Upstream{
			URL: address.URL, Credential: g.Credential, Secret: g.Secret, SigningSecret: g.SigningSecret,
			Headers: g.Headers, Patience: g.Patience, Reach: config.reach(), Logger: config.Logger,
		}, WithOAuth(s.Authz), WithResource(settings.Resources[i].Resource.String()), WithToolScopes(g.toolScopes(settings.Catalogue)))
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

// Open counts the streams and the sessions of all.
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

// greeting is what whoever opens the service in a browser reads.
func (all mcpServers) greeting() string {
	var text strings.Builder
	for _, server := range all {
		fmt.Fprintf(&text, "Connect an MCP client to %s\n", server.url())
	}
	return text.String()
}

func (m *MCPServer) url() string { return m.resources()[max(m.place(), 0)].Resource.String() }
