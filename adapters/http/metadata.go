package http

import (
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// serverMetadata is the document of RFC 8414. Fields without omitempty are always present, because
// RFC 8414 gives defaults to most absent ones.
type serverMetadata struct {
	Issuer                   string   `json:"issuer"`
	AuthorizationEndpoint    string   `json:"authorization_endpoint"`
	TokenEndpoint            string   `json:"token_endpoint"`
	RevocationEndpoint       string   `json:"revocation_endpoint"`
	RegistrationEndpoint     string   `json:"registration_endpoint,omitempty"`
	IntrospectionEndpoint    string   `json:"introspection_endpoint,omitempty"`
	IntrospectionAuthMethods []string `json:"introspection_endpoint_auth_methods_supported,omitempty"`
	ResponseTypes            []string `json:"response_types_supported"`
	ResponseModes            []string `json:"response_modes_supported"`
	GrantTypes               []string `json:"grant_types_supported"`
	TokenAuthMethods         []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods    []string `json:"revocation_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms      []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthAlgorithms []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	CodeChallengeMethods     []string `json:"code_challenge_methods_supported"`
	Scopes                   []string `json:"scopes_supported"`
	IssParameter             bool     `json:"authorization_response_iss_parameter_supported"`
	ClientMetadataDocuments  bool     `json:"client_id_metadata_document_supported"`
	ProtectedResources       []string `json:"protected_resources"`
	Documentation            string   `json:"service_documentation,omitempty"`
	OperatorPolicy           string   `json:"op_policy_uri,omitempty"`
	OperatorTerms            string   `json:"op_tos_uri,omitempty"`
}

func (e *Endpoints) metadata() serverMetadata {
	settings := e.server.Settings
	methods := []string{string(oauth.PublicClient), string(oauth.PrivateKeyJWT)}
	algorithms := client.AssertionAlgorithms()
	registration := ""
	if settings.SelfRegistration {
		methods = append(methods, string(oauth.ClientSecretBasic), string(oauth.ClientSecretPost))
		registration = settings.Issuer + registerPath
	}
	var resources []string
	for _, protected := range settings.Resources {
		resources = append(resources, protected.Resource.String())
	}
	document := serverMetadata{
		Issuer:                   settings.Issuer,
		AuthorizationEndpoint:    settings.Issuer + authorizePath,
		TokenEndpoint:            settings.Issuer + tokenPath,
		RevocationEndpoint:       settings.Issuer + revokePath,
		RegistrationEndpoint:     registration,
		ResponseTypes:            []string{"code"},
		ResponseModes:            []string{"query"},
		GrantTypes:               []string{"authorization_code", "refresh_token"},
		TokenAuthMethods:         methods,
		RevocationAuthMethods:    methods,
		TokenAuthAlgorithms:      algorithms,
		RevocationAuthAlgorithms: algorithms,
		CodeChallengeMethods:     []string{"S256"},
		Scopes:                   settings.KnownScopes().Values(),
		IssParameter:             true,
		ClientMetadataDocuments:  true,
		ProtectedResources:       resources,
		Documentation:            settings.Links.URL(oauth.ServiceDocumentation),
		OperatorPolicy:           settings.Links.URL(oauth.OperatorPolicy),
		OperatorTerms:            settings.Links.URL(oauth.OperatorTerms),
	}
	if settings.Introspects() {
		document.IntrospectionEndpoint = settings.Issuer + introspectPath
		document.IntrospectionAuthMethods = []string{string(oauth.ClientSecretBasic)}
	}
	return document
}
