package quota

import (
	"context"
	"net/netip"
	"slices"
)

// Requester is the client address of a request with its enclosing networks, for limits. No limit by
// address applies to the zero value, which counts only towards totals.
type Requester struct{ networks []netip.Prefix }

// The prefix lengths of the networks around an address. In IPv6 a home usually has a /64 or a /56,
// and a company a /48.
var (
	ipv4Networks = []int{32, 24}
	ipv6Networks = []int{64, 56, 48}
)

// RequesterAt returns the requester at an address, or the zero value for an invalid address and for
// one in an unlimited network.
func RequesterAt(address netip.Addr, unlimited []netip.Prefix) Requester {
	address = address.Unmap().WithZone("")
	isAround := func(network netip.Prefix) bool { return network.Contains(address) }
	if !address.IsValid() || slices.ContainsFunc(unlimited, isAround) {
		return Requester{}
	}
	lengths := ipv6Networks
	if address.Is4() {
		lengths = ipv4Networks
	}
	var r Requester
	for _, bits := range lengths {
		r.networks = append(r.networks, netip.PrefixFrom(address, bits).Masked())
	}
	return r
}

// Limited reports whether limits apply to the requester.
func (r Requester) Limited() bool { return len(r.networks) > 0 }

// Networks returns the networks around the address, the smallest first: /32 and /24, or /64, /56
// and /48. It returns nil when no limit applies.
func (r Requester) Networks() []netip.Prefix { return r.networks }

// Address returns the smallest network as text, "" when no limit applies.
func (r Requester) Address() string {
	if !r.Limited() {
		return ""
	}
	return r.networks[0].String()
}

// Limits of events in a minute that no setting changes.
const (
	UnknownTokensPerMinute = 60 // of an address: codes, refresh tokens and secrets of MCP servers

	RegistrationsPerMinute        = 6000 // of clients that register themselves
	AddressRegistrationsPerMinute = 30

	networkFetchesPerMinute = 30 // of documents that are not in the cache, for a /24 or a /56
	hostFetchesPerMinute    = 60 // of such documents, from their host
)

// UnknownToken returns the rates of an unknown code, refresh token or secret of an MCP server.
func (r Requester) UnknownToken() (rates []Rate) {
	if r.Limited() {
		rates = append(rates, Rate{"unknown tokens of " + r.Address(), 1, UnknownTokensPerMinute})
	}
	return rates
}

// Registration returns the rates of a client that registers itself. Each larger network around an
// address may register five times as many as the network in it.
func (r Requester) Registration() []Rate {
	rates, perMinute := []Rate{{"registrations", 1, RegistrationsPerMinute}}, AddressRegistrationsPerMinute
	for _, network := range r.networks {
		rates = append(rates, Rate{"registrations of " + network.String(), 1, perMinute})
		perMinute *= 5
	}
	return rates
}

// Fetch returns the rates of a fetch of an unknown document from a host: those of the host and of
// the /24 or /56.
func (r Requester) Fetch(host string) []Rate {
	rates := []Rate{{"fetches from " + host, 1, hostFetchesPerMinute}}
	if r.Limited() {
		rates = append(rates, Rate{"fetches for " + r.networks[1].String(), 1, networkFetchesPerMinute})
	}
	return rates
}

type requesterKey struct{}

// WithRequester returns a context with the requester.
func WithRequester(ctx context.Context, r Requester) context.Context {
	return context.WithValue(ctx, requesterKey{}, r)
}

// RequesterFrom returns the requester of the context, the zero value when it has none.
func RequesterFrom(ctx context.Context) Requester {
	r, _ := ctx.Value(requesterKey{}).(Requester)
	return r
}
