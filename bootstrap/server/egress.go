package server

import (
	"cmp"

	"github.com/pasteport/pasteport/bootstrap"
)

// EgressSettings names the settings of fetching metadata documents.
var EgressSettings = []string{
	"issuer", "dev", "private-key-jwt", "allowed-private-schemes", "client-id-ports", "allow-documents-without-client-id", "allow-any-content-type",
	"denied-prefixes", "metadata-proxy", "metadata-proxy-file", "allow-nat64",
}

// NewClientProbe returns a probe of clients' metadata documents. It needs only the EgressSettings.
func (c Config) NewClientProbe() (*bootstrap.ClientProbe, error) {
	config := c.Config
	config.Issuer = cmp.Or(c.Issuer, "http://"+DefaultAddr)
	config.AllowLoopbackClients = c.Development
	return bootstrap.NewClientProbe(config, bootstrap.WithRootCAs(c.RootCAs))
}
