package client

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// secrets returns the secrets of a client that registered itself with one, under every server
// secret that is kept, the newest first: keyed hashes of its client_id, so that nothing is stored.
func (r *Rules) secrets(client *Metadata) (secrets []oauth.ClientSecret, err error) {
	tags, err := r.keys.Tags("client-secret", client.ID.String())
	for _, tag := range tags {
		text := oauth.ClientSecretPrefix + base64.RawURLEncoding.EncodeToString(tag[:])
		secrets = append(secrets, oauth.NewClientSecret(text))
	}
	return secrets, err
}

// Secret returns the secret of a client that registered itself with one, otherwise none.
func (r *Rules) Secret(client *Metadata) (oauth.ClientSecret, error) {
	if !client.AuthMethod.HasSecret() {
		return oauth.ClientSecret{}, nil
	}
	secrets, err := r.secrets(client)
	if err != nil {
		return oauth.ClientSecret{}, err
	}
	return secrets[0], nil
}

// CheckSecret refuses a wrong or missing secret with InvalidClient, and every secret of a client
// without one.
func (r *Rules) CheckSecret(client *Metadata, presented oauth.ClientSecret) error {
	if !client.AuthMethod.HasSecret() {
		return RefuseUnknownSecret(presented)
	}
	secrets, err := r.secrets(client)
	if err != nil {
		return err
	}
	right := 0
	for _, secret := range secrets {
		right |= subtle.ConstantTimeCompare([]byte(secret.Reveal()), []byte(presented.Reveal()))
	}
	if right == 0 {
		return oauth.RefuseClient(errors.New("the client secret is missing or wrong"))
	}
	return nil
}

// RefuseUnknownSecret refuses a secret of a client without one, with InvalidClient.
func RefuseUnknownSecret(presented oauth.ClientSecret) error {
	if presented == (oauth.ClientSecret{}) {
		return nil
	}
	return oauth.Refuse(oauth.InvalidClient, "D8", "this client is public and has no secret")
}
