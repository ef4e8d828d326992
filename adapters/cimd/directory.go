// Package cimd finds what OAuth clients publish about themselves: Client ID Metadata Documents and their keys, fetched over HTTPS from
// addresses that strangers choose. It fetches little, slowly, never from inside the operator's network, and remembers only
// what is valid.
package cimd

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Options configures a directory. Issuer and Now are required; the zero value of every other field is the strict one.
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
	Limits         oauth.Limits              // bound fetches (C21); a zero field has its default
	Limited        oauth.LimitObserver       // is called when they slow, refuse or evict; nil is not
}

// limits bounds one fetch (C15); only specs have others than the default.
type limits struct {
	dial, handshake, header, exchange time.Duration
	wait                              time.Duration // for a place (C52), inside of exchange
	crowded                           time.Duration // exchange while all places are taken
	headerBytes                       int64
	bodyBytes, keySetBytes            int64 // of a document (C15) and of a key set (D33)
}

var defaultLimits = limits{
	dial: 2 * time.Second, handshake: 2 * time.Second, header: 3 * time.Second, exchange: 5 * time.Second,
	wait: 3 * time.Second, crowded: 2 * time.Second,
	headerBytes: 8 << 10, bodyBytes: 5 << 10, keySetBytes: 64 << 10,
}

// Directory is an oauth.ClientKeeper and an oauth.KeyDirectory over HTTPS. It is safe for concurrent use.
type Directory struct {
	options   Options
	limits    limits
	transport http.RoundTripper
	budget    *budget
	documents *fetchCache[*oauth.ClientMetadata]
	keySets   *fetchCache[oauth.KeySet]
}

var (
	_ oauth.ClientKeeper = (*Directory)(nil)
	_ oauth.KeyDirectory = (*Directory)(nil)
)

// sizes bounds the documents of clients in use and of others. Strangers cannot fill the first part: a client gets there by an approval with a
// valid token. Beyond the bound, the token with most clients there loses its own.
type sizes struct{ inUse, others int }

var (
	documentSizes = sizes{inUse: 10_000, others: 1024}
	keySetSizes   = sizes{inUse: 1000, others: 64}
)

// New returns a directory that remembers nothing yet.
func New(o Options) *Directory { return newDirectory(o, defaultLimits) }

func newDirectory(o Options, l limits) *Directory {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{options: o, limits: l, transport: newTransport(o, l), budget: newBudget(o.Limits.WithDefaults(), l.wait)}
	d.documents = newFetchCache(d, documentSizes, l.bodyBytes, d.readClient)
	d.keySets = newFetchCache(d, keySetSizes, l.keySetBytes, readKeySet)
	return d
}

// exchange returns how long a fetch may take. It is shorter while all places are taken, so that slow hosts free theirs earlier.
func (d *Directory) exchange() time.Duration {
	if d.budget.crowded() {
		return min(d.limits.crowded, d.limits.exchange)
	}
	return d.limits.exchange
}

// Client returns the document that the client publishes under id: the remembered one while it is fresh, otherwise one that is fetched once
// for all who need it meanwhile (C36-C39). A remembered document that does not list the redirect URI may be older than the URI, so it is
// fetched again, once a minute for each client; when that fails, the remembered one stays in use (C50). Besides the refusals of
// oauth.NewClientMetadata it returns oauth.ErrMetadataUnreachable (C41), oauth.ErrMetadataNoDocument (C42), oauth.ErrMetadataSlow (C53),
// oauth.ErrMetadataMalformed (C22) or oauth.ErrMetadataBudget (C45).
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

// Connected implements oauth.ClientKeeper.
func (d *Directory) Connected(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	return d.documents.findStale(ctx, id, func(*oauth.ClientMetadata) bool { return true })
}

// Keep implements oauth.ClientKeeper. It keeps the client's key set too.
func (d *Directory) Keep(id oauth.ClientID, by oauth.Fingerprint) {
	owner := ownerOf(id, by)
	d.documents.entries.keep(id.String(), owner)
	known, _ := d.documents.entries.get(id.String())
	if known == nil {
		return
	}
	if _, at := known.value.Keys(); at != (oauth.ClientID{}) {
		d.keySets.entries.keep(at.String(), owner)
	}
}

// ownerOf returns the owner of a client's document: the host token or, when it is not known, the client itself. As one owner, all clients with
// living grants at the start would lose a document for each new one. As owners of one document each, they lose one only when no token has two.
func ownerOf(id oauth.ClientID, by oauth.Fingerprint) string {
	if by == (oauth.Fingerprint{}) {
		return id.String()
	}
	return fmt.Sprintf("%x", by)
}

// KeySet implements oauth.KeyDirectory. A set without the wanted key may be older than the key, so it is fetched again, once a
// minute (D33). While it cannot be renewed, a set with the wanted key serves for an hour after it has expired (C56).
func (d *Directory) KeySet(ctx context.Context, at oauth.ClientID, wanted string) (oauth.KeySet, error) {
	return d.keySets.findStale(ctx, at, func(known oauth.KeySet) bool {
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
func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, _ := lru.New[K, V](size) // fails only for a size that is not positive
	return cache
}
