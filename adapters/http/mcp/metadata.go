package mcp

import (
	"github.com/pasteport/pasteport/adapters/http/wellknown"
	"github.com/pasteport/pasteport/domain/trace"
)

// resourceMetadata is the document of RFC 9728, built from the configuration alone (F6, F8).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name,omitempty"`
}

func newMetadata(o Options) *wellknown.Document {
	return wellknown.New(trace.ResourceMetadata, resourceMetadata{
		Resource: o.Resource.String(), AuthorizationServers: []string{o.Issuer}, ScopesSupported: o.Scopes.Known().Values(),
		BearerMethods: []string{"header"}, ResourceName: o.ResourceName,
	})
}
