package oauth

import (
	"context"
	"net/netip"
)

// Requester is the client address of a request with its enclosing networks, for limits. The zero
// value has no limits itself, and counts only towards totals.
type Requester struct{ networks []netip.Prefix }

// The prefix lengths of the networks around an address. In IPv6 a home usually has a /64 or a /56,
// and a company a /48.
var (
	ipv4Networks = []int{32, 24}
	ipv6Networks = []int{64, 56, 48}
)

// RequesterAt returns the requester at an address, the zero value for an address in
// Limits.UnlimitedNetworks.
func RequesterAt(address netip.Addr, limits Limits) Requester {
	address = address.Unmap().WithZone("")
	if !address.IsValid() || limits.Exempt(address) {
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
