package oauth

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// Connection is a living grant, or a code that waits for its client, as its person and the operator see it.
type Connection struct {
	ID            string
	Subject       string // whose it is, as the site says
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

// Connection returns what the person may see of a living grant.
func (g *AccessGrant) Connection(now time.Time) (shown Connection, alive bool) {
	shown = g.connection()
	shown.LastUsedAt, shown.EndsBy = g.lastUsedAt, g.idleEnd
	return shown, g.alive(now)
}

// LastSeen returns when the connection was last used, or made if it never was.
func (c Connection) LastSeen() time.Time {
	if c.LastUsedAt.IsZero() {
		return c.CreatedAt
	}
	return c.LastUsedAt
}

const connectionsPurpose = "connections"

// SealConnections lets whoever has shown a host token end the grants made with it, for as long as a consent page lives.
func SealConnections(prints []Fingerprint, settings *Settings, now time.Time) (string, error) {
	var joined strings.Builder
	for _, print := range prints {
		joined.WriteString(hex.EncodeToString(print[:]))
	}
	return sealValues(settings.Keys, connectionsPurpose, settings.Issuer, "at", formatMillis(now), "prints", joined.String())
}

// OpenConnections gives back what SealConnections kept; it refuses like OpenTicket. What was sealed before the server secret was
// replaced is too old, because it does not find the grants that were made since.
func OpenConnections(sealed string, settings *Settings, now time.Time) ([]Fingerprint, error) {
	sealers, err := settings.Keys.Sealers(seal.Binding{Kind: connectionsPurpose, Owner: settings.Issuer})
	if err != nil {
		return nil, err
	}
	values, sealedAt, err := openValuesWith(sealers, sealed)
	if err != nil {
		return nil, err
	}
	_, _, replaced := openValuesWith(sealers[:1], sealed)
	if replaced != nil || expired(sealedAt.Add(settings.TicketTTL), now) {
		return nil, Refuse(ExpiredTicket, "B4", "the form is too old")
	}
	joined, err := hex.DecodeString(values.Get("prints"))
	if err != nil {
		return nil, fmt.Errorf("reading an opened form: %w", err)
	}
	var prints []Fingerprint
	for print := range slices.Chunk(joined, len(Fingerprint{})) {
		prints = append(prints, Fingerprint(print))
	}
	return prints, nil
}
