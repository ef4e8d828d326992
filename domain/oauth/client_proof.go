package oauth

import "slices"

// clientProof is how a client proves who it is, as its document has it.
type clientProof struct {
	method    AuthMethod
	algorithm string   // the only one that the client signs with; "" is any of AssertionAlgorithms
	keys      KeySet   // as the document holds them
	keysAt    ClientID // where they are published instead; fetched like a document, so the same rules hold for the URL (C20)
}

func (d clientDocument) proof(rules ClientMetadataRules) (clientProof, error) {
	method, err := d.authMethod(rules.PrivateKeyJWT)
	if err != nil || method != PrivateKeyJWT {
		return clientProof{method: method}, err
	}
	proof := clientProof{method: method}
	proof.algorithm, _ = d["token_endpoint_auth_signing_alg"].(string)
	if address, elsewhere := d["jwks_uri"].(string); elsewhere {
		if proof.keysAt, err = ParseClientID(address, rules.KeySets); err != nil {
			return clientProof{}, invalidDocument("C20", "the document's jwks_uri is no URL that can be fetched")
		}
		return proof, nil
	}
	inline, _ := d["jwks"].(map[string]any)
	proof.keys, err = NewKeySet(inline)
	return proof, err
}

var secretAuthMethods = []string{"client_secret_basic", "client_secret_post", "client_secret_jwt"}

// authMethod settles on what the client declares if this server offers it, otherwise on the first of the client's list that it
// offers (C29, C30).
func (d clientDocument) authMethod(privateKeyJWT bool) (AuthMethod, error) {
	declared, hasDeclared := d["token_endpoint_auth_method"]
	method, isText := declared.(string)
	supported, hasList, ok := d.list("token_endpoint_auth_methods_supported")
	switch {
	case hasDeclared && !isText, hasList && !ok:
		return "", invalidDocument("C30", "the document's authentication methods are malformed")
	case slices.Contains(secretAuthMethods, method):
		return "", invalidDocument("C29", "the document asks for a client secret, which everybody could read")
	case hasDeclared && hasList && !slices.Contains(supported, method):
		return "", invalidDocument("C30", "the document's authentication method is not in its own list")
	case !hasDeclared && !hasList:
		return PublicClient, nil
	}
	for _, wanted := range append([]string{method}, supported...) {
		if wanted == string(PublicClient) || wanted == string(PrivateKeyJWT) && privateKeyJWT && d.signsAsOffered() {
			return AuthMethod(wanted), nil
		}
	}
	return "", Refuse(UnsupportedClient, "C30", "the client authenticates in a way that this server does not offer")
}

func (d clientDocument) signsAsOffered() bool {
	algorithm, declared := d["token_endpoint_auth_signing_alg"]
	name, _ := algorithm.(string)
	return !declared || slices.Contains(AssertionAlgorithms(), name)
}
