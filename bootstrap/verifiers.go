package bootstrap

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// boolVerifier adapts oauth.Config.VerifyBearer to oauth.BearerVerifier.
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

// ownVerifiers returns the verifiers of the additional servers that do not use the verifier of the
// config.
func ownVerifiers(config oauth.Config) map[oauth.Resource]oauth.BearerVerifier {
	own := map[oauth.Resource]oauth.BearerVerifier{}
	for _, server := range config.MoreServers {
		if server.Verifier != nil {
			own[oauth.NewResource(server.Resource)] = server.Verifier
		}
	}
	return own
}
