package bootstrap

import (
	"net/url"
	"strconv"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newDirectory(config oauth.Config, settings *oauth.Settings, store oauth.Store,
	chosen oauthOptions) (*cimd.Directory, error) {
	options := directoryOptions(config, settings, chosen)
	options.Fetches = limits.NewFetches(settings.Limits)
	options.Store, _ = store.(oauth.ClientDocumentStore)
	if chosen.documents == "" {
		return cimd.New(options), nil
	}
	var err error
	if options.Pinned,
		err = cimd.OpenPinned(chosen.documents, settings.ClientID, settings.Metadata, config.Logger); err != nil {
		return nil, oauth.NewMistake("%s: %s", oauth.Field("WithClientDocuments"), err)
	}
	return cimd.New(options), nil
}

func directoryOptions(config oauth.Config, settings *oauth.Settings, chosen oauthOptions) cimd.Options {
	return cimd.Options{
		Issuer:         settings.Issuer,
		Rules:          settings.Metadata,
		AllowLoopback:  config.AllowLoopbackClients,
		Ports:          ports(config.ClientIDPorts),
		AnyContentType: config.AllowAnyContentType,
		AllowNAT64:     config.AllowNAT64,
		DeniedPrefixes: config.DeniedPrefixes,
		Proxy:          proxy(config.MetadataProxy),
		Now:            config.Now,
		Logger:         config.Logger,
		RootCAs:        chosen.roots,
		Limited:        chosen.limited,
	}
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
