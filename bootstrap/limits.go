package bootstrap

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/throttle"
	"github.com/pasteport/pasteport/domain/oauth"
)

// WithSharedLimits counts wrong tokens in the store, for all processes that use it. It is the default for a store that several machines
// share. The store has to be an oauth.WindowCounter.
func WithSharedLimits() OAuthOption {
	return func(p *parts) { p.sharedLimits = true }
}

// counterIn returns what counts for every process, nil when each one counts for itself.
func counterIn(store oauth.Store, forced bool) (oauth.WindowCounter, error) {
	counter, counts := store.(oauth.WindowCounter)
	switch {
	case forced && !counts:
		return nil, errors.New("the store cannot count for several processes: make it an oauth.WindowCounter, or leave WithSharedLimits out")
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

// ports are those that the Config has checked.
func ports(texts []string) (ports []uint16) {
	for _, text := range texts {
		if number, err := strconv.ParseUint(text, 10, 16); err == nil {
			ports = append(ports, uint16(number))
		}
	}
	return ports
}

// proxy is one that the Config has checked, nil for none.
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
