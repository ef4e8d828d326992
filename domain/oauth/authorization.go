package oauth

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// consent is the part that a code and its grant have in common.
type consent struct {
	id         string // of the ticket that the person approved
	client     ClientID
	clientName string
	authMethod AuthMethod
	redirect   RedirectURI
	resource   Resource
	scopes     Scopes
	subject    string
	roles      []string
	createdAt  time.Time
	hostPrint  Fingerprint
}

// ID returns the id of the approved ticket. It is no secret. A code and the grant that it opens have the same one.
func (c *consent) ID() string { return c.id }

// Client returns the client_id.
func (c *consent) Client() ClientID { return c.client }

// AuthMethod returns how the client authenticates, as settled when the person approved.
func (c *consent) AuthMethod() AuthMethod { return c.authMethod }

// Resource returns the MCP server that the client may call.
func (c *consent) Resource() Resource { return c.resource }

// Subject returns the person's name at the site.
func (c *consent) Subject() string { return c.subject }

// Scopes returns the granted scopes.
func (c *consent) Scopes() Scopes { return c.scopes }

// HostPrint returns the fingerprint of the host token. It is zero once a grant has ended.
func (c *consent) HostPrint() Fingerprint { return c.hostPrint }

func (c *consent) connection() Connection {
	return Connection{
		ID: c.id, Subject: c.subject, ClientName: c.clientName, ClientHost: c.client.Host(), Loopback: c.redirect.Loopback(),
		PrivateScheme: c.redirect.PrivateScheme(), Scopes: c.scopes, CreatedAt: c.createdAt,
	}
}

// Authorization is an AuthorizationCode or an AccessGrant.
type Authorization interface {
	ID() string
	Client() ClientID
	AuthMethod() AuthMethod
	HostPrint() Fingerprint
	// Connection returns the view for its person. alive is false when there is nothing left to end.
	Connection(now time.Time) (shown Connection, alive bool)
	// End withdraws the code or ends the grant. It reports whether it was alive.
	End(reason EndReason, now time.Time) (wasAlive bool)
}

// Authorizations are codes and grants, mostly those of one host token.
type Authorizations struct {
	Codes  []*AuthorizationCode
	Grants []*AccessGrant
}

// All iterates over the codes, then over the grants.
func (a Authorizations) All() iter.Seq[Authorization] {
	return func(yield func(Authorization) bool) {
		for _, code := range a.Codes {
			if !yield(code) {
				return
			}
		}
		for _, grant := range a.Grants {
			if !yield(grant) {
				return
			}
		}
	}
}

// Connections returns those that are alive, the oldest first.
func (a Authorizations) Connections(now time.Time) (living []Connection) {
	for authorization := range a.All() {
		if shown, alive := authorization.Connection(now); alive {
			living = append(living, shown)
		}
	}
	slices.SortStableFunc(living, func(a, b Connection) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return living
}

// End ends the chosen ones and returns the ids of those that were alive.
func (a Authorizations) End(chosen func(id string) bool, reason EndReason, now time.Time) (ended []string) {
	for authorization := range a.All() {
		if chosen(authorization.ID()) && authorization.End(reason, now) {
			ended = append(ended, authorization.ID())
		}
	}
	return ended
}

// Surplus returns the ids of those that end because one host token has more than limit (J14): expired ones first, then the least recently used.
// It never returns the id of the new one, made.
func (a Authorizations) Surplus(made string, limit int, now time.Time) map[string]bool {
	if len(a.Codes)+len(a.Grants) <= limit {
		return nil
	}
	others := slices.DeleteFunc(slices.Collect(a.All()), func(one Authorization) bool { return one.ID() == made })
	slices.SortStableFunc(others, func(one, other Authorization) int { return lastSeen(one, now).Compare(lastSeen(other, now)) })
	surplus := map[string]bool{}
	for _, one := range others[:min(len(others), len(a.Codes)+len(a.Grants)-limit)] {
		surplus[one.ID()] = true
	}
	return surplus
}

// lastSeen returns when a living authorization was last used, or made if it never was; zero for any other.
func lastSeen(one Authorization, now time.Time) time.Time {
	shown, alive := one.Connection(now)
	if !alive {
		return time.Time{}
	}
	return shown.LastSeen()
}

// Connection is a living grant, or a code that waits for its client, as shown to its person and to the operator.
type Connection struct {
	ID            string
	Subject       string // the person's name at the site
	ClientName    string // the client's own claim
	ClientHost    string
	Loopback      bool // its code went to a program on the person's computer
	PrivateScheme bool // its code went to an installed app
	Scopes        Scopes
	Waiting       bool // a code that is not redeemed
	CreatedAt     time.Time
	LastUsedAt    time.Time // to the minute; zero when it was never used
	EndsBy        time.Time // unless it is renewed
}

// Connection returns the view of a grant for its person.
func (g *AccessGrant) Connection(now time.Time) (shown Connection, alive bool) {
	shown = g.connection()
	shown.LastUsedAt, shown.EndsBy = g.lastUsedAt, g.idleEnd
	return shown, g.alive(now)
}

// LastSeen returns when the connection was last used, or made if it was never used.
func (c Connection) LastSeen() time.Time {
	if c.LastUsedAt.IsZero() {
		return c.CreatedAt
	}
	return c.LastUsedAt
}

const connectionsPurpose = "connections"

// SealConnections seals the fingerprints of a pasted host token into the connections page, so that its form can end their grants. The form expires
// after TicketTTL.
func SealConnections(prints []Fingerprint, settings *Settings, now time.Time) (string, error) {
	var joined strings.Builder
	for _, print := range prints {
		joined.WriteString(hex.EncodeToString(print[:]))
	}
	return sealValues(settings.Keys, connectionsPurpose, settings.Issuer, "at", formatMillis(now), "prints", joined.String())
}

// OpenConnections opens the fingerprints of SealConnections. It refuses like OpenTicket. A form from before a change of the server secret counts
// as too old, because its fingerprints do not find newer grants.
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
