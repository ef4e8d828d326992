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
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// newDirectory returns the directories of clients and of their keys. Each is the host's if the host
// provides one, and ours otherwise.
func newDirectory(config oauth.Config, rules *client.Rules, store oauth.Store,
	chosen oauthOptions) (client.Directory, client.KeyDirectory, error) {
	directory := directoryConfig(config, rules, chosen)
	directory.Store, _ = store.(client.DocumentStore)
	if chosen.documents != "" {
		pinned, err := cimd.OpenPinned(chosen.documents, rules, config.Logger)
		if err != nil {
			return nil, nil, oauth.NewMistake("WithClientDocuments", ": %w", err)
		}
		directory.Pinned = pinned
	}
	ours := cimd.New(directory)
	if chosen.clients == nil {
		return ours, ours, nil
	}
	if keys, both := chosen.clients.(client.KeyDirectory); both {
		return chosen.clients, keys, nil
	}
	return chosen.clients, ours, nil
}

func directoryConfig(config oauth.Config, rules *client.Rules, chosen oauthOptions) cimd.Config {
	return cimd.Config{
		Options:       chosen.metadata,
		Fetches:       limits.NewRates(),
		Issuer:        config.Issuer,
		Rules:         rules,
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
type ClientProbe struct{ config cimd.Config }

// NewClientProbe returns a probe, or the mistakes in the fields of the config about clients, which
// are all that it needs. Of the options, only WithMetadata and WithRootCAs have an effect.
func NewClientProbe(config oauth.Config, options ...OAuthOption) (*ClientProbe, error) {
	chosen := choose(options)
	rules, err := client.NewRules(config)
	if err := errors.Join(append(chosen.wrong, err)...); err != nil {
		return nil, err
	}
	directory := directoryConfig(config, rules, chosen)
	directory.Now = time.Now
	return &ClientProbe{directory}, nil
}

// PinnedClient is a document in the folder of WithClientDocuments.
type PinnedClient = cimd.PinnedDocument

// Pinned returns the documents in a folder as an OAuthServer reads them, in the order of their
// files.
func (p *ClientProbe) Pinned(ctx context.Context, folder string) ([]PinnedClient, error) {
	opened, err := cimd.OpenPinned(folder, p.config.Rules, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	byFile := func(a, b PinnedClient) int { return cmp.Compare(a.File, b.File) }
	return slices.SortedFunc(maps.Values(opened.Documents(ctx)), byFile), nil
}

// Fetch fetches the document of a client once. The error is why a server would refuse the client.
func (p *ClientProbe) Fetch(ctx context.Context, clientID string) (ClientAnswer, error) {
	id, err := p.config.Rules.ParseURL(clientID)
	if err != nil {
		return ClientAnswer{}, err
	}
	return cimd.Probe(ctx, p.config, id)
}
