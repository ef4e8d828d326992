package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newDirectory(config oauth.Config, settings *oauth.Settings, store oauth.Store,
	chosen oauthOptions) (*cimd.Directory, error) {
	directory := directoryConfig(config, settings, chosen)
	directory.Store, _ = store.(oauth.ClientDocumentStore)
	if chosen.documents != "" {
		pinned, err := cimd.OpenPinned(chosen.documents, settings.ClientID, settings.Metadata, config.Logger)
		if err != nil {
			return nil, oauth.NewMistake("WithClientDocuments", ": %w", err)
		}
		directory.Pinned = pinned
	}
	return cimd.New(directory), nil
}

func directoryConfig(config oauth.Config, settings *oauth.Settings, chosen oauthOptions) cimd.Config {
	return cimd.Config{
		Options:       chosen.metadata,
		Fetches:       limits.NewRates(),
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

// ClientAnswer is what the host of a client's metadata document answered.
type ClientAnswer = cimd.Answer

// ClientProbe fetches documents of clients as an OAuthServer does, but without its caches and
// limits.
type ClientProbe struct {
	rules  oauth.ClientIDRules
	config cimd.Config
}

// NewClientProbe returns a probe, or the mistakes in the fields about clients; it needs no other
// field. Of the options, only WithMetadata and WithRootCAs have an effect.
func NewClientProbe(config oauth.Config, options ...OAuthOption) (*ClientProbe, error) {
	chosen := choose(options)
	rules, metadata, err := config.ClientRules()
	if err := errors.Join(append(chosen.wrong, err)...); err != nil {
		return nil, err
	}
	asked := directoryConfig(config, &oauth.Settings{Issuer: config.Issuer, Metadata: metadata}, chosen)
	asked.Now = time.Now
	return &ClientProbe{rules, asked}, nil
}

// PinnedClient is a document in the folder of WithClientDocuments.
type PinnedClient = cimd.PinnedDocument

// Pinned returns the documents in a folder as an OAuthServer reads them, in the order of their
// files.
func (p *ClientProbe) Pinned(ctx context.Context, folder string) ([]PinnedClient, error) {
	opened, err := cimd.OpenPinned(folder, p.rules, p.config.Rules, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	byFile := func(a, b PinnedClient) int { return cmp.Compare(a.File, b.File) }
	return slices.SortedFunc(maps.Values(opened.Documents(ctx)), byFile), nil
}

// Fetch fetches the document of a client once. The error is why a server would refuse the client.
func (p *ClientProbe) Fetch(ctx context.Context, clientID string) (ClientAnswer, error) {
	id, err := oauth.ParseClientID(clientID, p.rules)
	if err != nil {
		return ClientAnswer{}, err
	}
	return cimd.Probe(ctx, p.config, id)
}
