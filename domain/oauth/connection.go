package oauth

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"time"
)

// Connection is a living grant as its person may see it.
type Connection struct {
	ID            string
	ClientName    string // the client's own claim
	ClientHost    string
	Loopback      bool // its code went to a program on the person's computer
	PrivateScheme bool // its code went to an installed app
	Scopes        Scopes
	Waiting       bool // its code was not exchanged yet
	CreatedAt     time.Time
	LastUsedAt    time.Time // to the minute; zero when it never was
	EndsBy        time.Time // unless it is renewed
}

// Connection returns what the person behind the grant may see of it; alive is false when there is nothing left to see.
func (g *AccessGrant) Connection(now time.Time) (shown Connection, alive bool) {
	return Connection{
		ID: g.id, ClientName: g.clientName, ClientHost: g.client.Host(), Loopback: g.redirect.Loopback(), PrivateScheme: g.redirect.PrivateScheme(),
		Scopes: g.scopes, Waiting: g.state == pending, CreatedAt: g.createdAt, LastUsedAt: g.lastUsedAt, EndsBy: g.idleEnd,
	}, g.alive(now)
}

const connectionsPurpose = "connections"

// SealConnections lets whoever has shown a host token end the grants made with it, for as long as a consent page lives.
func SealConnections(print Fingerprint, settings *Settings, now time.Time) (string, error) {
	return sealValues(settings.Keys, connectionsPurpose, settings.Issuer, url.Values{"at": {formatMillis(now)}, "print": {hex.EncodeToString(print[:])}})
}

// OpenConnections gives back what SealConnections kept; it refuses like OpenTicket.
func OpenConnections(sealed string, settings *Settings, now time.Time) (print Fingerprint, err error) {
	values, sealedAt, err := openValues(settings, connectionsPurpose, sealed)
	if err != nil {
		return print, err
	}
	if expired(sealedAt.Add(settings.TicketTTL), now) {
		return print, Refuse(ExpiredTicket, "the form is too old")
	}
	if _, err := hex.Decode(print[:], []byte(values.Get("print"))); err != nil {
		return print, fmt.Errorf("reading an opened form: %w", err)
	}
	return print, nil
}
