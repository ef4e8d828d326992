package oauth

import (
	"net/netip"
	"reflect"
)

// Limits bounds what one address, one person and all clients together can use. A zero field has the
// default in its comment. An address is an IPv4 address or the /64 of an IPv6 one.
type Limits struct {
	// UnlimitedNetworks are the networks to which no limit by address applies.
	UnlimitedNetworks []netip.Prefix

	WrongTokens      int // 10 different ones of a network (/24, /56) in five minutes, before it takes turns
	MaxVerifications int // 64 tokens that one verifier checks at once; a quarter is kept for refreshes

	MaxSessions          int // 10 000 sessions of an MCP server, and streams through a gateway, in each process
	MaxSessionsPerPerson int // 100 of them, in all clients together
	MaxGrantsPerToken    int // 100 connections made with one host token
	CallsPerMinute       int // 0, any number of calls of tools by one person at one MCP server, in each process
}

// DefaultLimits returns the limits of a Config that sets none.
func DefaultLimits() Limits {
	return Limits{
		WrongTokens:          10,
		MaxVerifications:     64,
		MaxSessions:          10_000,
		MaxSessionsPerPerson: 100,
		MaxGrantsPerToken:    100,
	}
}

// WithDefaults fills in the fields that are zero.
func (l Limits) WithDefaults() Limits {
	fields, defaults := reflect.ValueOf(&l).Elem(), reflect.ValueOf(DefaultLimits())
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			fields.Field(i).Set(defaults.Field(i))
		}
	}
	return l
}

func (l Limits) check() (found mistakes) {
	fields := reflect.ValueOf(l)
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if field.Type.Kind() == reflect.Int && fields.Field(i).Int() < 0 {
			found.add("Limits."+field.Name, "is %d: choose 1 or more", fields.Field(i).Int())
		}
	}
	for _, network := range l.UnlimitedNetworks {
		if !network.IsValid() || network.Addr().Is4In6() {
			found.add("Limits.UnlimitedNetworks", "has the invalid network %q: write networks such as 203.0.113.0/24 "+
				"or 2001:db8::/48", network)
		}
	}
	return found
}

// NearMaxGrants reports whether a host token has nine tenths of its connections.
func (l Limits) NearMaxGrants(connections int) bool { return 10*connections >= 9*l.MaxGrantsPerToken }
