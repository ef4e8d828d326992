package limits

import (
	"net/netip"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	knownFor = 30 * 24 * time.Hour
	// addressesPerToken bounds the addresses that one right token makes known in knownFor, so that
	// an attacker with a valid token cannot exempt thousands from the limit of all networks.
	addressesPerToken = 16
)

// knownAddresses are the addresses from which a right token was pasted within knownFor.
type knownAddresses struct {
	addresses times[netip.Prefix]
	perToken  *Rates[oauth.Fingerprint]
}

func newKnownAddresses() knownAddresses {
	return knownAddresses{newTimes[netip.Prefix](),
		NewRates[oauth.Fingerprint](knownFor/addressesPerToken, addressesPerToken)}
}

func (a knownAddresses) add(address netip.Prefix, token oauth.Fingerprint, now time.Time) {
	if a.has(address, now) || a.perToken.Take(token, now) == 0 {
		a.addresses.add(address, now)
	}
}

func (a knownAddresses) has(address netip.Prefix, now time.Time) bool {
	return a.addresses.within(address, knownFor, now)
}
