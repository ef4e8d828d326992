package oauth

import (
	"fmt"
	"slices"

	"github.com/pasteport/pasteport/domain/seal"
)

// MinSecretLength is the least length of the server secret, in bytes.
const MinSecretLength = seal.MinSecretLength

// SecretKeeper keeps the server secrets for Config.Secrets. A Store may be one.
type SecretKeeper = seal.SecretKeeper

// Fingerprint is the keyed hash of a host token by which a Store finds its grants.
type Fingerprint = seal.Fingerprint

func (c Config) checkSecrets() (mistakes []error) {
	if len(c.Secret) == 0 && len(c.PreviousSecrets) > 0 {
		mistakes = append(mistakes, NewMistake("%s is set without %s: give the newest secret there", Field("PreviousSecrets"), Field("Secret")))
	}
	secrets, err := c.keeper().Secrets()
	if err != nil {
		return append(mistakes, fmt.Errorf("reading the server secrets: %w", err))
	}
	for i, secret := range secrets {
		field := Field("Secret")
		if i > 0 {
			field = "PreviousSecrets"
		}
		if len(secret) < MinSecretLength {
			mistakes = append(mistakes, NewMistake("%s has %d bytes: give %d random bytes or more, or use a store that keeps a secret of its own", field, len(secret), MinSecretLength))
		}
	}
	return mistakes
}

// keeper prefers the secrets of the configuration; an empty one is there to be refused.
func (c Config) keeper() SecretKeeper {
	if len(c.Secret) == 0 && c.Secrets != nil {
		return c.Secrets
	}
	secrets := seal.FixedSecrets{slices.Clone(c.Secret)}
	for _, previous := range c.PreviousSecrets {
		secrets = append(secrets, slices.Clone(previous))
	}
	return secrets
}
