package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/throttle"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// WithSharedLimits counts wrong tokens in the store, for all processes that share it. It is the default for a store on a database server. NewOAuthServer
// fails if the store is not an oauth.WindowCounter.
func WithSharedLimits() OAuthOption {
	return func(p *parts) { p.sharedLimits = true }
}

// counterIn returns the store as a counter, nil when each process counts for itself.
func counterIn(store oauth.Store, forced bool) (oauth.WindowCounter, error) {
	counter, counts := store.(oauth.WindowCounter)
	switch {
	case forced && !counts:
		return nil, errors.New("the store cannot count for several processes: implement oauth.WindowCounter, or omit WithSharedLimits")
	case counts && (forced || counter.SharedByReplicas()):
		return counter, nil
	}
	return nil, nil
}

func newGuesses(counter oauth.WindowCounter, config oauth.Config, settings *oauth.Settings) oauth.GuessLimit {
	if counter == nil {
		counter = throttle.NewMemory()
	}
	return throttle.NewGuesses(counter, settings, config.Logger)
}

func newDirectory(config oauth.Config, settings *oauth.Settings, chosen parts) *cimd.Directory {
	return cimd.New(cimd.Options{
		Issuer: settings.Issuer, Rules: settings.Metadata, AllowLoopback: config.AllowLoopbackClients, Ports: ports(config.ClientIDPorts),
		AnyContentType: config.AllowAnyContentType, AllowNAT64: config.AllowNAT64, DeniedPrefixes: config.DeniedPrefixes,
		Proxy: proxy(config.MetadataProxy), Now: config.Now, Logger: config.Logger, RootCAs: chosen.roots,
		Limits: settings.Limits, Limited: chosen.limited,
	})
}

// ports parses ports that Config.Settings has checked.
func ports(texts []string) (ports []uint16) {
	for _, text := range texts {
		if number, err := strconv.ParseUint(text, 10, 16); err == nil {
			ports = append(ports, uint16(number))
		}
	}
	return ports
}

// proxy parses a URL that Config.Settings has checked; nil for "".
func proxy(address string) *url.URL {
	if address == "" {
		return nil
	}
	at, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return at
}

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

// ownVerifiers returns the verifiers of the additional servers that do not use the verifier of the config.
func ownVerifiers(config oauth.Config) map[oauth.Resource]oauth.BearerVerifier {
	own := map[oauth.Resource]oauth.BearerVerifier{}
	for _, server := range config.MoreServers {
		if server.Verifier != nil {
			own[oauth.NewResource(server.Resource)] = server.Verifier
		}
	}
	return own
}

// capabilities are the optional interfaces of a store whose absence switches a feature off without an error. docs/embedding.md has their effects.
// oauth.SecretKeeper is not among them, because NewOAuthServer fails when neither the store nor the Config has a secret.
var capabilities = []struct {
	name     string
	provided func(oauth.Store) bool
}{
	{"oauth.EndWatcher", implements[oauth.EndWatcher]},
	{"oauth.WindowCounter", implements[oauth.WindowCounter]},
	{"oauth.SecretVerifier", implements[oauth.SecretVerifier]},
	{"oauth.AuthorizationLister", implements[oauth.AuthorizationLister]},
	{"oauth.ClientLister", implements[oauth.ClientLister]},
	{"trace.Log", implements[trace.Log]},
}

func implements[T any](store oauth.Store) bool {
	_, ok := store.(T)
	return ok
}

// reportMissing logs the capabilities that the store lacks, because a store that wraps another loses those of the inner one unnoticed.
func reportMissing(store oauth.Store, logger *slog.Logger) {
	var missing []string
	for _, c := range capabilities {
		if !c.provided(store) {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		logger.Info("the store lacks optional interfaces, so some features are off; docs/embedding.md lists them", "missing", strings.Join(missing, ", "))
	}
}
