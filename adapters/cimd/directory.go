// Package cimd finds what OAuth clients publish about themselves: Client ID Metadata Documents and their keys, fetched over HTTPS from
// addresses that strangers choose. It fetches little, slowly, never from inside the operator's network, and remembers only
// what is valid.
package cimd

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Options is what a directory is told. Issuer and Now are required; the zero value of every other field is the strict one.
type Options struct {
	Issuer         string                    // named in the User-Agent (C11)
	Rules          oauth.ClientMetadataRules // what is accepted inside documents (A14, C23)
	AllowLoopback  bool                      // development only: loopback addresses and any port may be fetched from (C49)
	AllowNAT64     bool                      // lets 64:ff9b::/96 through when the IPv4 address inside it is allowed (C19)
	AnyContentType bool                      // reads documents that are not labelled as JSON (C14)
	Ports          []uint16                  // besides 443 (C7)
	DeniedPrefixes []netip.Prefix            // besides the special-purpose ranges, for example the operator's own (C19)
	Proxy          *url.URL                  // http or https, the way out when there is no other; nil connects directly (C51)
	Now            func() time.Time          // the one clock
	Logger         *slog.Logger              // nil is silent
	RootCAs        *x509.CertPool            // nil is the system's roots
	Resolver       *net.Resolver             // nil is Go's; what it answers is checked in any case (C17)
	Shared         *Shared                   // counts what is fetched in a minute (C21); nil counts for this process alone
}

// limits bounds one fetch (C15); only specs have others than the default.
type limits struct {
	dial, handshake, header, exchange time.Duration
	headerBytes                       int64
	bodyBytes, keySetBytes            int64 // of a document (C15) and of a key set (D33)
	budget                            budgetLimits
}

var defaultLimits = limits{
	dial: 2 * time.Second, handshake: 2 * time.Second, header: 3 * time.Second, exchange: 5 * time.Second,
	headerBytes: 8 << 10, bodyBytes: 5 << 10, keySetBytes: 64 << 10,
	budget: defaultBudget,
}

// Directory is an oauth.ClientDirectory and an oauth.KeyDirectory over HTTPS. It is safe for concurrent use.
type Directory struct {
	options   Options
	limits    limits
	transport http.RoundTripper
	budget    *budget
	documents *shelf[*oauth.ClientMetadata]
	keySets   *shelf[oauth.KeySet]
}

// How many documents and key sets are kept; with bodies of 5 and 64 KiB that bounds the cache to a few MiB each.
const (
	maxDocuments = 1024
	maxKeySets   = 64
)

// New returns a directory that remembers nothing yet.
func New(o Options) *Directory { return newDirectory(o, defaultLimits) }

func newDirectory(o Options, l limits) *Directory {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{options: o, limits: l, transport: newTransport(o, l), budget: newBudget(l.budget, o.rates(l.budget))}
	d.documents = newShelf(d, maxDocuments, l.bodyBytes, d.readClient)
	d.keySets = newShelf(d, maxKeySets, l.keySetBytes, readKeySet)
	return d
}

func (o Options) rates(l budgetLimits) rates {
	if o.Shared == nil {
		return newOwnRates(l)
	}
	return sharedRates{l, *o.Shared}
}

// Client returns what the client publishes under id: remembered while it is fresh, otherwise fetched once for everybody who
// asks meanwhile (C36-C39). A remembered document that does not list the redirect URI may be older than the URI, so it is fetched again,
// once a minute for each client; when that fails, the remembered one stays in use (C50). Besides the refusals of
// oauth.NewClientMetadata it returns oauth.ErrMetadataUnreachable (C41), oauth.ErrMetadataNoDocument (C42),
// oauth.ErrMetadataMalformed (C22) or oauth.ErrMetadataBudget (C45), and oauth.ErrUnavailable while nobody can count.
func (d *Directory) Client(ctx context.Context, id oauth.ClientID, redirectURI string) (*oauth.ClientMetadata, error) {
	found, err := d.documents.find(ctx, id, func(known *oauth.ClientMetadata) bool { return !known.Lacks(redirectURI, d.options.Rules) })
	if err == nil {
		return found, nil
	}
	known, fresh := d.documents.fresh(id)
	if !fresh {
		return nil, err
	}
	d.options.Logger.InfoContext(ctx, "client metadata not fetched again for an unlisted redirect URI", "client_id", id.String(), "error", err)
	return known, nil
}

// KeySet implements oauth.KeyDirectory. A set without the wanted key may be older than the key, so it is fetched again, once a
// minute (D33).
func (d *Directory) KeySet(ctx context.Context, at oauth.ClientID, wanted string) (oauth.KeySet, error) {
	return d.keySets.find(ctx, at, func(known oauth.KeySet) bool {
		_, found := known.Key(wanted)
		return found
	})
}

func (d *Directory) readClient(ctx context.Context, id oauth.ClientID, members map[string]any) (*oauth.ClientMetadata, error) {
	metadata, err := oauth.NewClientMetadata(id, members, d.options.Rules)
	if err != nil {
		return nil, err
	}
	if ignored := metadata.IgnoredRedirects(); ignored > 0 {
		d.options.Logger.WarnContext(ctx, "client publishes redirect URIs that cannot be used here", "client_id", id.String(), "ignored", ignored)
	}
	return metadata, nil
}

func readKeySet(_ context.Context, _ oauth.ClientID, members map[string]any) (oauth.KeySet, error) {
	return oauth.NewKeySet(members)
}

// newLRU returns a cache that forgets what was used least recently; size is positive.
func newLRU[V any](size int) *lru.Cache[string, V] {
	cache, _ := lru.New[string, V](size) // fails only for a size that is not positive
	return cache
}
