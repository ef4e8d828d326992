// Package cimd finds what OAuth clients publish about themselves: Client ID Metadata Documents, fetched over HTTPS from
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
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

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
	Now            func() time.Time          // the one clock
	Logger         *slog.Logger              // nil is silent
	RootCAs        *x509.CertPool            // nil is the system's roots
	Resolver       *net.Resolver             // nil is Go's; what it answers is checked in any case (C17)
}

// limits bounds one fetch (C15); only specs have others than the default.
type limits struct {
	dial, handshake, header, exchange time.Duration
	headerBytes, bodyBytes            int64
	budget                            budgetLimits
}

var defaultLimits = limits{
	dial: 2 * time.Second, handshake: 2 * time.Second, header: 3 * time.Second, exchange: 5 * time.Second,
	headerBytes: 8 << 10, bodyBytes: 5 << 10,
	budget: defaultBudget,
}

// maxRemembered is the number of documents kept; with bodies of 5 KiB it bounds the cache to a few MiB.
const maxRemembered = 1024

// Directory is an oauth.ClientDirectory over HTTPS. It is safe for concurrent use.
type Directory struct {
	options    Options
	limits     limits
	transport  http.RoundTripper
	remembered *lru.Cache[string, *entry]
	flights    singleflight.Group
	budget     *budget
}

// New returns a directory that remembers nothing yet.
func New(o Options) *Directory { return newDirectory(o, defaultLimits) }

func newDirectory(o Options, l limits) *Directory {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Directory{
		options: o, limits: l, transport: newTransport(o, l), remembered: newLRU[*entry](maxRemembered), budget: newBudget(l.budget),
	}
}

// Client returns what the client publishes under id: remembered while it is fresh, otherwise fetched once for everybody who
// asks meanwhile (C36-C39). Besides the refusals of oauth.NewClientMetadata it returns oauth.ErrMetadataUnreachable (C41, C42),
// oauth.ErrMetadataMalformed (C22) or oauth.ErrMetadataBudget (C45).
func (d *Directory) Client(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	if known, ok := d.remembered.Get(id.String()); ok && known.fresh(d.options.Now()) {
		return known.metadata, nil
	}
	if err := d.budget.admits(oauth.RequesterFrom(ctx), d.options.Now()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.limits.exchange)
	defer cancel()
	// Whoever asked first may hang up without failing the others.
	flight := d.flights.DoChan(id.String(), func() (any, error) { return d.refresh(context.WithoutCancel(ctx), id) })
	select {
	case landed := <-flight:
		metadata, _ := landed.Val.(*oauth.ClientMetadata)
		return metadata, landed.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for the fetch: %w", oauth.ErrMetadataUnreachable, ctx.Err())
	}
}

// refresh fetches or revalidates the document within the budget, and remembers it if it is valid.
func (d *Directory) refresh(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	known, ok := d.remembered.Get(id.String())
	if ok && known.fresh(d.options.Now()) {
		return known.metadata, nil // an earlier flight landed between the caller's look and this one
	}
	leave, err := d.budget.enter(id, oauth.RequesterFrom(ctx), d.options.Now())
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := d.fetch(ctx, id, known)
	if err != nil {
		return nil, err
	}
	d.remembered.Add(id.String(), found)
	return found.metadata, nil
}

func (d *Directory) fetch(ctx context.Context, id oauth.ClientID, known *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limits.exchange)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, id.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: build the request: %w", oauth.ErrMetadataUnreachable, err)
	}
	agent := "Pasteport (+" + d.options.Issuer + ")"
	request.Header = http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {agent}}
	conditional := known.addConditions(request.Header)
	// The bare transport follows no redirect and keeps no cookie (C11, C12).
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: get the document: %w", oauth.ErrMetadataUnreachable, err)
	}
	defer response.Body.Close()
	if conditional && response.StatusCode == http.StatusNotModified {
		return known.renewed(response.Header, d.options.Now()), nil
	}
	metadata, err := d.read(ctx, id, response)
	if err != nil {
		return nil, err
	}
	return newEntry(metadata, response.Header, d.options.Now()), nil
}

// read makes of the answer what it says about the client.
func (d *Directory) read(ctx context.Context, id oauth.ClientID, response *http.Response) (*oauth.ClientMetadata, error) {
	body, err := readDocument(response, d.limits.bodyBytes, d.options.AnyContentType)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataUnreachable, err)
	}
	members, err := decodeDocument(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataMalformed, err)
	}
	metadata, err := oauth.NewClientMetadata(id, members, d.options.Rules)
	if err != nil {
		return nil, err
	}
	if ignored := metadata.IgnoredRedirects(); ignored > 0 {
		d.options.Logger.WarnContext(ctx, "client publishes redirect URIs that cannot be used here", "client_id", id.String(), "ignored", ignored)
	}
	return metadata, nil
}

// newLRU returns a cache that forgets what was used least recently; size is positive.
func newLRU[V any](size int) *lru.Cache[string, V] {
	cache, _ := lru.New[string, V](size) // fails only for a size that is not positive
	return cache
}
