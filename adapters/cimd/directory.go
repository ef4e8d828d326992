// Package cimd fetches Client ID Metadata Documents and key sets of OAuth clients over HTTPS. Since
// anyone can choose the addresses, it limits the number and rate of fetches, refuses addresses that
// are not public, and caches only valid documents. Directory is its main type.
package cimd

import (
	"cmp"
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

// Options configures a Directory. Issuer, Now and Fetches are required; the zero value of every
// other field is the strictest.
type Options struct {
	Issuer         string                    // named in the User-Agent
	Rules          oauth.ClientMetadataRules // for the members of documents
	AllowLoopback  bool                      // development only: allows loopback addresses and any port
	AllowNAT64     bool                      // allows 64:ff9b::/96 when the IPv4 address inside it is allowed
	AnyContentType bool                      // accepts documents with a media type other than JSON
	Ports          []uint16                  // besides 443
	DeniedPrefixes []netip.Prefix            // besides the special-purpose ranges, for example the operator's own
	Proxy          *url.URL                  // http or https, if fetches need a proxy; nil connects directly
	Now            func() time.Time          // the clock
	Logger         *slog.Logger              // nil for none
	RootCAs        *x509.CertPool            // nil for those of the system
	Resolver       *net.Resolver             // nil for Go's; its addresses are checked
	Fetches        oauth.FetchLimit          // how many and how often
	Limited        oauth.LimitObserver       // called when a limit slows, refuses or evicts; nil for none
	Pinned         *Pinned                   // documents that are used without a fetch; nil for none
	Store          oauth.ClientDocumentStore // keeps documents of clients in use; nil keeps them in memory only
}

// limits are the limits of one fetch. They differ from the default only in tests.
type limits struct {
	dial, handshake, header, fetch time.Duration
	crowded                        time.Duration // fetch while all slots are taken
	headerBytes                    int64
	bodyBytes, keySetBytes         int64 // of a document and of a key set
}

var defaultLimits = limits{
	dial:        2 * time.Second,
	handshake:   2 * time.Second,
	header:      3 * time.Second,
	fetch:       5 * time.Second,
	crowded:     2 * time.Second,
	headerBytes: 8 << 10,
	bodyBytes:   5 << 10,
	keySetBytes: 64 << 10,
}

// Directory is an oauth.ClientKeeper and an oauth.KeyDirectory over HTTPS. It is safe for
// concurrent use.
type Directory struct {
	options   Options
	limits    limits
	transport http.RoundTripper
	breaker   *breaker
	documents *fetchCache[*oauth.ClientMetadata]
	keySets   *fetchCache[oauth.KeySet]
}

var (
	_ oauth.ClientKeeper = (*Directory)(nil)
	_ oauth.KeyDirectory = (*Directory)(nil)
)

// sizes are the maximum size of a document, and the maximum numbers of documents of clients in use
// and of others. A client is in use after an approval with a valid token, so that strangers cannot
// fill that part. At its limit, a client of the token with most clients is evicted.
type sizes struct {
	bodyBytes     int64
	inUse, others int
}

// New returns a Directory with empty caches.
func New(o Options) *Directory { return newDirectory(o, defaultLimits) }

func newDirectory(o Options, l limits) *Directory {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{
		options:   o,
		limits:    l,
		transport: newRoundTripper(o, l),
		breaker:   newBreaker(),
	}
	d.documents = newFetchCache(d, oauth.MetadataDocument, sizes{bodyBytes: l.bodyBytes, inUse: 10_000, others: 1024},
		d.readClient)
	d.keySets = newFetchCache(d, oauth.KeySetDocument,
		sizes{bodyBytes: l.keySetBytes, inUse: 1000, others: 64}, readKeySet)
	return d
}

// fetchLimit returns how long a fetch may take. It is shorter while all slots are taken, so that
// slow hosts release theirs earlier.
func (d *Directory) fetchLimit() time.Duration {
	if d.options.Fetches.Full() {
		return min(d.limits.crowded, d.limits.fetch)
	}
	return d.limits.fetch
}

// acquire waits for a slot. It returns the errors of oauth.FetchLimit, and oauth.ErrMetadataSlow
// during a pause of the breaker.
func (d *Directory) acquire(ctx context.Context, f oauth.Fetch) (release func(), waited bool, err error) {
	now, key := d.options.Now, breakerKey(f)
	slow, err := d.breaker.check(key, now())
	if err != nil {
		return nil, false, err
	}
	if slow {
		f.Slow = key
	}
	release, waited, err = d.options.Fetches.Acquire(ctx, f, now())
	if err != nil {
		return nil, false, err
	}
	if _, err := d.breaker.check(key, now()); err != nil { // it may have timed out meanwhile
		release()
		return nil, false, err
	}
	return release, waited, nil
}

// Client returns the document at id: the pinned one, the cached one while it is fresh, otherwise
// one that is fetched once for all concurrent requests. A cached document without the redirect URI
// may be outdated, so it is fetched again, at most once a minute for each client; if that fails,
// the cached one stays in use. If the fetch fails for a reason that says nothing about the client,
// it returns the last good document with WithFailedCheck. Besides the refusals of
// oauth.NewClientMetadata it returns oauth.ErrMetadataUnreachable, oauth.ErrMetadataNoDocument,
// oauth.ErrMetadataSlow, oauth.ErrMetadataMalformed or oauth.ErrMetadataBudget.
func (d *Directory) Client(ctx context.Context, id oauth.ClientID, redirectURI string) (*oauth.ClientMetadata, error) {
	if pinned := d.options.Pinned.find(ctx, id); pinned != nil {
		return pinned, nil
	}
	lists := func(known *oauth.ClientMetadata) bool { return !known.LacksRedirectURI(redirectURI, d.options.Rules) }
	document, err := d.documents.findOrStale(ctx, id, lists, (*entry[*oauth.ClientMetadata]).wasGood)
	if known, fresh := d.documents.fresh(id); fresh && (err != nil || document.failure != nil) {
		d.options.Logger.InfoContext(ctx, "client metadata not fetched again for an unlisted redirect URI", "client_id",
			id.String(),
			"error", cmp.Or(err, document.failure))
		return known, nil
	}
	switch {
	case err != nil:
		return nil, err
	case document.failure != nil:
		return document.value.WithFailedCheck(document.checkedAt, document.failure), nil
	}
	return document.value, nil
}

// Connected implements oauth.ClientKeeper.
func (d *Directory) Connected(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	if pinned := d.options.Pinned.find(ctx, id); pinned != nil {
		return pinned, nil
	}
	return findExpired(ctx, d.documents, id, func(*oauth.ClientMetadata) bool { return true })
}

// Keep implements oauth.ClientKeeper. It keeps the client's key set too.
func (d *Directory) Keep(id oauth.ClientID, by oauth.Fingerprint) {
	client := d.options.Pinned.find(context.Background(), id)
	if client == nil {
		d.documents.keep(id, id, by)
		known, _ := d.documents.entries.get(id.String())
		if known == nil {
			return
		}
		client = known.value
	}
	if _, at := client.Keys(); at != (oauth.ClientID{}) {
		d.keySets.keep(at, id, by)
	}
}

// ownerOf returns the owner of a client's document: the host token or, if it is not known, the
// client itself. If all clients with grants at the start had one owner, each new client would evict
// one of them. As owners of one document each, they lose one only if no token has two.
func ownerOf(id oauth.ClientID, by oauth.Fingerprint) string {
	if by == (oauth.Fingerprint{}) {
		return id.String()
	}
	return fmt.Sprintf("%x", by)
}

// KeySet implements oauth.KeyDirectory. A set without the wanted key may be outdated, so it is
// fetched again, at most once a minute. A set with the wanted key is used for an hour after it has
// expired if it cannot be renewed.
func (d *Directory) KeySet(ctx context.Context, at oauth.ClientID, wanted string) (oauth.KeySet, error) {
	return findExpired(ctx, d.keySets, at, func(known oauth.KeySet) bool {
		_, found := known.Key(wanted)
		return found
	})
}

// findExpired returns a fresh document or, if the fetch fails for a reason that says nothing about
// the client, one that expired less than oauth.KeysStaleFor ago.
func findExpired[T any](ctx context.Context, c *fetchCache[T], at oauth.ClientID, enough func(T) bool) (T, error) {
	document, err := c.findOrStale(ctx, at, enough, func(e *entry[T], now time.Time) bool {
		return e.stale(now) && enough(e.value)
	})
	if err == nil && document.failure != nil {
		c.directory.options.Logger.InfoContext(ctx, "expired document stays in use because it cannot be renewed", "url",
			at.String(), "error", document.failure)
	}
	return document.value, err
}

func (d *Directory) readClient(ctx context.Context, id oauth.ClientID,
	members map[string]any) (*oauth.ClientMetadata, error) {
	metadata, err := oauth.NewClientMetadata(id, members, d.options.Rules)
	if err != nil {
		return nil, err
	}
	if ignored := metadata.IgnoredRedirects(); ignored > 0 {
		d.options.Logger.WarnContext(ctx, "client publishes redirect URIs that cannot be used here", "client_id",
			id.String(), "ignored", ignored)
	}
	return metadata, nil
}

func readKeySet(_ context.Context, _ oauth.ClientID, members map[string]any) (oauth.KeySet, error) {
	return oauth.NewKeySet(members)
}

// newLRU returns an LRU cache; size is positive.
func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, _ := lru.New[K, V](size) // fails only for a size that is not positive
	return cache
}
