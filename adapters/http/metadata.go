package http

import (
	"github.com/pasteport/pasteport/domain/oauth"
)

// serverMetadata is the document of RFC 8414. It contains every field, because RFC 8414 gives a
// default to most absent ones.
type serverMetadata struct {
	Issuer                   string   `json:"issuer"`
	AuthorizationEndpoint    string   `json:"authorization_endpoint"`
	TokenEndpoint            string   `json:"token_endpoint"`
	RevocationEndpoint       string   `json:"revocation_endpoint"`
	RegistrationEndpoint     string   `json:"registration_endpoint,omitempty"`
	ResponseTypes            []string `json:"response_types_supported"`
	ResponseModes            []string `json:"response_modes_supported"`
	GrantTypes               []string `json:"grant_types_supported"`
	TokenAuthMethods         []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods    []string `json:"revocation_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms      []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`
	RevocationAuthAlgorithms []string `json:"revocation_endpoint_auth_signing_alg_values_supported,omitempty"`
	CodeChallengeMethods     []string `json:"code_challenge_methods_supported"`
	Scopes                   []string `json:"scopes_supported"`
	IssParameter             bool     `json:"authorization_response_iss_parameter_supported"`
	ClientMetadataDocuments  bool     `json:"client_id_metadata_document_supported"`
	ProtectedResources       []string `json:"protected_resources"`
}

func (e *Endpoints) metadata() serverMetadata {
	settings := e.server.Settings()
	methods, algorithms := authMethods(settings)
	var resources []string
	for _, protected := range settings.Resources {
		resources = append(resources, protected.Resource.String())
	}
	registration := ""
	if settings.SelfRegistration {
		registration = settings.Issuer + registerPath
	}
	return serverMetadata{
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
		Scopes:                   settings.Catalogue.Known().With(oauth.OfflineAccess).Values(),
		IssParameter:             true,
		ClientMetadataDocuments:  true,
		ProtectedResources:       resources,
	}
}

// authMethods returns the authentication methods of clients and their signature algorithms (RFC
// 8414 §2).
func authMethods(settings *oauth.Settings) (methods, algorithms []string) {
	if !settings.Metadata.PrivateKeyJWT {
		return []string{string(oauth.PublicClient)}, nil
	}
	return []string{string(oauth.PublicClient), string(oauth.PrivateKeyJWT)}, oauth.AssertionAlgorithms()
}
