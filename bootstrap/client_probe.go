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
	asked.Now, asked.Fetches = time.Now, limits.NewRates()
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
	documents := slices.Collect(maps.Values(opened.Documents(ctx)))
	slices.SortFunc(documents, func(a, b PinnedClient) int { return cmp.Compare(a.File, b.File) })
	return documents, nil
}

// Fetch fetches the document of a client once. The error is why a server would refuse the client.
func (p *ClientProbe) Fetch(ctx context.Context, clientID string) (ClientAnswer, error) {
	id, err := oauth.ParseClientID(clientID, p.rules)
	if err != nil {
		return ClientAnswer{}, err
	}
	return cimd.Probe(ctx, p.config, id)
}
