package bootstrap

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// boolVerifier is a site that only knows yes and no.
type boolVerifier func(token string) bool

func (known boolVerifier) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	if !known(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	return oauth.Principal{}, nil
}

func verifierOf(config oauth.Config) oauth.BearerVerifier {
	if config.Verifier != nil {
		return config.Verifier
	}
	return boolVerifier(config.VerifyBearer)
}
