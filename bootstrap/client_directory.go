package bootstrap

import (
	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newDirectory(config oauth.Config, settings *oauth.Settings, store oauth.Store,
	chosen oauthOptions) (*cimd.Directory, error) {
	directory := directoryConfig(config, settings, chosen)
	directory.Fetches = limits.NewRates()
	directory.Store, _ = store.(oauth.ClientDocumentStore)
	if chosen.documents == "" {
		return cimd.New(directory), nil
	}
	var err error
	if directory.Pinned,
		err = cimd.OpenPinned(chosen.documents, settings.ClientID, settings.Metadata, config.Logger); err != nil {
		return nil, oauth.NewMistake("WithClientDocuments", ": %w", err)
	}
	return cimd.New(directory), nil
}

func directoryConfig(config oauth.Config, settings *oauth.Settings, chosen oauthOptions) cimd.Config {
	return cimd.Config{
		Options:       chosen.metadata,
		Issuer:        settings.Issuer,
		Rules:         settings.Metadata,
		AllowLoopback: config.AllowLoopbackClients,
		Ports:         config.ClientIDPorts,
		Now:           config.Now,
		Logger:        config.Logger,
		RootCAs:       chosen.roots,
		Limited:       chosen.limited,
	}
}
