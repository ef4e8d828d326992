package service

import (
	"context"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// localClient is the client of any program on this computer in development. mcp-remote and the MCP
// Inspector redirect to /oauth/callback, Claude Code to /callback, and VS Code to the root.
var localClient = oauth.HostedClient{
	Path: "local", Name: "A program on this computer, in development",
	RedirectURIs: []string{
		"http://127.0.0.1/", "http://localhost/", "http://127.0.0.1/callback", "http://localhost/callback",
		"http://127.0.0.1/oauth/callback", "http://localhost/oauth/callback",
	},
}

// DoctorDocument is the path, below the issuer, of the document of DoctorClient.
const DoctorDocument = client.HostedPath + doctorPath

const doctorPath = "doctor"

// DoctorClient is the client with which doctor checks a whole login.
var DoctorClient = oauth.HostedClient{
	Path: doctorPath, Name: "Pasteport doctor, which checks this server",
	RedirectURIs: []string{"http://127.0.0.1/callback", "http://localhost/callback"},
}

// LocalClientID returns the client_id of the programs on this computer, in development.
func (c Config) LocalClientID() string { return c.Issuer + client.HostedPath + localClient.Path }

// EgressSettings names the settings that decide which metadata documents are fetched, and how.
var EgressSettings = []string{
	"issuer", "dev", "allowed-private-schemes", "client-id-ports",
	"allow-documents-without-client-id", "client-documents", "metadata-proxy",
}

// PinnedClients returns the documents in the folder client-documents.
func (c Config) PinnedClients(ctx context.Context) ([]bootstrap.PinnedClient, error) {
	probe, err := c.NewClientProbe()
	if err != nil || c.ClientDocuments == "" {
		return nil, err
	}
	pinned, err := probe.Pinned(ctx, c.ClientDocuments)
	return pinned, mistaken("client-documents", "", err)
}

// NewClientProbe returns a probe of clients' metadata documents. It needs only the EgressSettings.
func (c Config) NewClientProbe() (*bootstrap.ClientProbe, error) {
	config := c.authorization()
	config.AllowLoopbackClients = c.Development
	return bootstrap.NewClientProbe(config, bootstrap.WithMetadata(cimd.Options(c.Metadata)),
		bootstrap.WithRootCAs(c.RootCAs))
}
