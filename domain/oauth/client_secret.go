package oauth

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"

	"github.com/pasteport/pasteport/domain/seal"
)

const (
	clientSecretPrefix  = "pps_" // lets secret scanners find a leaked one
	clientSecretPurpose = "client-secret"
)

// ClientSecret is the secret of an MCP server elsewhere, or of a client that registered itself: a
// keyed hash of its client_id, so that nothing is stored. It prints as "[redacted]".
type ClientSecret struct{ confidential }

// NewClientSecret returns the secret that a client has sent.
func NewClientSecret(text string) ClientSecret {
	if text == "" {
		return ClientSecret{}
	}
	return ClientSecret{conceal(text)}
}

func clientSecretOf(tag seal.Tag) ClientSecret {
	return NewClientSecret(clientSecretPrefix + base64.RawURLEncoding.EncodeToString(tag[:]))
}

// ClientSecret returns the secret of a client that registered itself with one, otherwise none.
func (s *Settings) ClientSecret(client *ClientMetadata) (ClientSecret, error) {
	if !client.authentication.method.HasSecret() {
		return ClientSecret{}, nil
	}
	tags, err := s.Keys.Tags(clientSecretPurpose, client.id.raw)
	if err != nil {
		return ClientSecret{}, err
	}
	return clientSecretOf(tags[0]), nil
}

// CheckClientSecret refuses a wrong or missing secret with InvalidClient, and every secret of a
// client without one. A secret is valid under every server secret that is kept.
func (s *Settings) CheckClientSecret(client *ClientMetadata, presented ClientSecret) error {
	if !client.authentication.method.HasSecret() {
		return RefuseUnknownSecret(presented)
	}
	tags, err := s.Keys.Tags(clientSecretPurpose, client.id.raw)
	if err != nil {
		return err
	}
	right := 0
	for _, tag := range tags {
		right |= subtle.ConstantTimeCompare([]byte(clientSecretOf(tag).Reveal()), []byte(presented.Reveal()))
	}
	if right == 0 {
		return RefuseClient(errors.New("the client secret is missing or wrong"))
	}
	return nil
}

// RefuseUnknownSecret refuses a secret of a client without one, with InvalidClient.
func RefuseUnknownSecret(presented ClientSecret) error {
	if presented == (ClientSecret{}) {
		return nil
	}
	return Refuse(InvalidClient, "D8", "this client is public and has no secret")
}
