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
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// Options says how documents are fetched. Its zero value is the strictest.
type Options struct {
	Proxy *url.URL `set:"metadata-proxy" field:"WithMetadata.Proxy" secret:"true" allowed:"a URL whose password has %2F for a slash and %23 for #" doc:"http:// or https:// URL of the proxy for fetching metadata on a network without direct internet access"`
}

// Check returns an oauth.Mistake if Proxy is not the URL of a proxy.
func (o Options) Check() error {
	return outbound.Options{Proxy: o.Proxy}.CheckProxy("WithMetadata.Proxy")
}

// Config configures a Directory. Issuer, Now and Fetches are required; the zero value of every
// other field is the strictest.
type Config struct {
	Options
	Issuer        string               // named in the User-Agent
	Ports         []uint16             // besides 443
	Rules         *client.Rules        // for the members of documents
	AllowLoopback bool                 // development only: allows loopback addresses and any port
	Now           func() time.Time     // the clock
	Logger        *slog.Logger         // nil for none
	RootCAs       *x509.CertPool       // nil for those of the system
	Resolver      *net.Resolver        // nil for Go's; its addresses are checked
	Fetches       quota.RateLimit      // how many a minute
	Limited       quota.Observer       // called when a limit slows or refuses; nil for none
	Pinned        *Pinned              // documents that are used without a fetch; nil for none
	Store         client.DocumentStore // keeps documents of approved clients; nil keeps them in memory only
}

// limits are the limits of one fetch. They differ from the default only in tests.
type limits struct {
	dial, handshake, header, fetch time.Duration
	slots                          int64         // fetches at the same time
	wait                           time.Duration // for a slot
	headerBytes                    int64
	bodyBytes, keySetBytes         int64 // of a document and of a key set
}

var defaultLimits = limits{
	dial:        2 * time.Second,
	handshake:   2 * time.Second,
	header:      3 * time.Second,
	fetch:       5 * time.Second,
	slots:       16,
	wait:        3 * time.Second,
	headerBytes: 8 << 10,
	bodyBytes:   5 << 10,
	keySetBytes: 64 << 10,
}

// Directory is a client.Keeper and a client.KeyDirectory over HTTPS. It is safe for
// concurrent use.
type Directory struct {
	options   Config
	limits    limits
	transport http.RoundTripper
	slots     *semaphore.Weighted
	answered  func(*http.Response) // called for each response, before its body is read
	documents *fetchCache[*client.Metadata]
	keySets   *fetchCache[client.KeySet]
}

var (
	_ client.Keeper       = (*Directory)(nil)
	_ client.KeyDirectory = (*Directory)(nil)
)

// New returns a Directory with empty caches.
func New(o Config) *Directory { return newDirectory(o, defaultLimits) }

func newDirectory(o Config, l limits) *Directory {
	o.Logger, o.Rules = cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), cmp.Or(o.Rules, new(client.Rules))
	transport := newTransport(o, l)
	if o.AllowLoopback { // in development, http connects to loopback only and uses no proxy
		direct := o
		direct.Proxy = nil
		plain := newTransport(direct, l)
		plain.DialContext = (&net.Dialer{Timeout: l.dial, Control: onlyLoopback, Resolver: o.Resolver}).DialContext
		transport.RegisterProtocol("http", plain)
	}
	d := &Directory{
		options:   o,
		limits:    l,
		transport: transport,
		slots:     semaphore.NewWeighted(l.slots),
		answered:  func(*http.Response) {},
	}
	d.documents = newFetchCache(d, 1024, l.bodyBytes, d.readClient)
	d.documents.store = o.Store
	d.keySets = newFetchCache(d, 64, l.keySetBytes,
		func(_ context.Context, _ oauth.ClientID, members map[string]any) (client.KeySet, error) {
			return client.NewKeySet(members)
		})
	return d
}

// acquire counts the fetch of an unknown document, and waits for one of the slots, which the caller
// releases. It returns client.ErrBudget.
func (d *Directory) acquire(ctx context.Context, at oauth.ClientID, known bool) error {
	o := d.options
	if !known {
		host := strings.TrimSuffix(strings.ToLower(at.Host()), ":443")
		if wait := o.Fetches.Take(o.Now(), quota.RequesterFrom(ctx).Fetch(host)...); wait > 0 {
			return client.RetryableAfter(wait, fmt.Errorf("%w in a minute for one network or from one host",
				client.ErrBudget))
		}
	}
	if d.slots.TryAcquire(1) {
		return nil
	}
	o.Limited.Observe(quota.Fetches, quota.Slowed)
	ctx, cancel := context.WithTimeout(ctx, d.limits.wait)
	defer cancel()
	if d.slots.Acquire(ctx, 1) != nil {
		return fmt.Errorf("%w at the same time: no slot became free in time", client.ErrBudget)
	}
	return nil
}

// Client returns the document at id: the pinned one, the cached one while it is fresh, otherwise
// one that is fetched once for all concurrent requests. A cached document without the redirect URI
// may be outdated, so it is fetched again, at most once a minute for each client; if that fails,
// the cached one stays in use. If the fetch fails for a reason that says nothing about the client,
// it returns the last good document with the CheckFailure. Besides the refusals of
// client.NewMetadata it returns client.ErrUnreachable, client.ErrNoDocument,
// client.ErrMalformed or client.ErrBudget.
func (d *Directory) Client(ctx context.Context, id oauth.ClientID, redirectURI string) (*client.Metadata, error) {
	if pinned := d.options.Pinned.find(ctx, id); pinned != nil {
		return pinned, nil
	}
	hasRedirect := func(known *client.Metadata) bool { return !known.LacksRedirectURI(redirectURI) }
	document, err := d.documents.find(ctx, id, hasRedirect, (*entry[*client.Metadata]).wasGood)
	if err != nil { // the cached one may still be fresh, but without the redirect URI
		if document, _ = d.documents.kept.Peek(id.String()); !document.fresh(d.options.Now()) {
			return nil, err
		}
	}
	if document.failure == nil || document.fresh(d.options.Now()) {
		return document.value, nil
	}
	unchecked := *document.value
	unchecked.CheckedAt, unchecked.CheckFailure = document.checkedAt, document.failure
	return &unchecked, nil
}

// Connected implements client.Keeper.
func (d *Directory) Connected(ctx context.Context, id oauth.ClientID) (*client.Metadata, error) {
	if pinned := d.options.Pinned.find(ctx, id); pinned != nil {
		return pinned, nil
	}
	return d.documents.findExpired(ctx, id, func(*client.Metadata) bool { return true })
}

// Keep implements client.Keeper.
func (d *Directory) Keep(ctx context.Context, id oauth.ClientID) {
	if d.options.Pinned.find(ctx, id) == nil {
		d.documents.save(ctx, id.String())
	}
}

// KeySet implements client.KeyDirectory. A set without the wanted key may be outdated, so it is
// fetched again, at most once a minute. A set with the wanted key is used for an hour after it has
// expired if it cannot be renewed.
func (d *Directory) KeySet(ctx context.Context, at oauth.ClientID, wanted client.KeyReference) (client.KeySet, error) {
	return d.keySets.findExpired(ctx, at, func(known client.KeySet) bool {
		_, found := known.Key(wanted)
		return found
	})
}

func (d *Directory) readClient(ctx context.Context, id oauth.ClientID,
	members map[string]any) (*client.Metadata, error) {
	metadata, err := d.options.Rules.NewMetadata(id, members)
	if err != nil {
		return nil, err
	}
	if metadata.IgnoredRedirects > 0 {
		d.options.Logger.WarnContext(ctx, "client publishes redirect URIs that cannot be used here", "client_id",
			id.String(), "ignored", metadata.IgnoredRedirects)
	}
	return metadata, nil
}

// Answer is what the host of a document answered. Status is 0 when it did not answer.
type Answer struct {
	Status      int
	ContentType string
	Mitigated   string // the header cf-mitigated, with which Cloudflare marks a bot challenge
	Body        []byte // the document; nil with an error
}

// Probe fetches the document at id once, with the transport and the checks of a Directory, but
// without its cache and budget. The error is the one for which a Directory refuses the client.
func Probe(ctx context.Context, o Config, id oauth.ClientID) (answer Answer, err error) {
	d := New(o)
	d.answered = func(r *http.Response) {
		answer = Answer{
			Status:      r.StatusCode,
			ContentType: r.Header.Get("Content-Type"),
			Mitigated:   r.Header.Get("Cf-Mitigated"),
		}
	}
	fetched, err := d.documents.fetch(ctx, id, nil)
	if err == nil {
		answer.Body = fetched.body
	}
	return answer, err
}
