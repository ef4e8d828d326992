package bootstrap

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/throttle"
	"github.com/pasteport/pasteport/domain/oauth"
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
