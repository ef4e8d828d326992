package service

import (
	"errors"
	"net/netip"

	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// networkItem is a network or a single address.
var networkItem = settings.Item[netip.Prefix]{
	Parse: func(written string) (netip.Prefix, error) {
		if address, err := netip.ParseAddr(written); err == nil && address.Zone() == "" {
			address = address.Unmap()
			return netip.PrefixFrom(address, address.BitLen()), nil
		}
		network, err := netip.ParsePrefix(written)
		if err == nil && network.Addr().Is4In6() { // no address is compared in this form
			err = errors.New("an IPv4 network is written as one")
		}
		return network, err
	},
	Format: netip.Prefix.String,
	Ask:    "networks such as 10.0.0.0/8, or addresses",
}

// checkProxies refuses to trust everybody, because then anybody could claim any address.
func checkProxies(proxies []netip.Prefix) error {
	for _, network := range proxies {
		if network.Bits() == 0 {
			return oauth.NewMistake("%s has %s, which is everybody: name the networks of your own proxies", oauth.Field("TrustedProxies"), network)
		}
	}
	return nil
}
