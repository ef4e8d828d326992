package oauth

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// consent holds the fields that a code and its grant share.
type consent struct {
	id        string // of the ticket that the person approved
	client    Client
	redirect  RedirectURI
	resource  Resource
	scopes    Scopes
	subject   string
	account   string // the person's name for people; "" for the subject
	tokenID   string // Principal.TokenID
	roles     []string
	createdAt time.Time
	hostPrint Fingerprint
	version   int64 // ConsentSnapshot.Version
	state     state
	endReason EndReason
	host      sealedHostToken // for the holder of the code, and in a grant for the holder of the refresh token
}

// state is the state of a code or of a grant, as stores keep it.
type state string

const (
	codeIssued    state = "issued"
	codeRedeemed  state = "redeemed"
	codeWithdrawn state = "withdrawn"
	grantActive   state = "active"
	grantEnded    state = "ended"
)

// The State of a code that can be redeemed or withdrawn, and of a grant that has not ended.
const (
	IssuedCode  = string(codeIssued)
	ActiveGrant = string(grantActive)
)

// ID returns the id of the approved ticket, which a code and its grant share. It is not a secret.
func (c *consent) ID() string { return c.id }

// Client returns the ID, the name and the AuthMethod of the client.
func (c *consent) Client() Client { return c.client }

// Resource returns the MCP server that the client may call.
func (c *consent) Resource() Resource { return c.resource }

// Subject returns the person's name at the site.
func (c *consent) Subject() string { return c.subject }

// Scopes returns the granted scopes.
func (c *consent) Scopes() Scopes { return c.scopes }

// HostPrint returns the fingerprint of the host token.
func (c *consent) HostPrint() Fingerprint { return c.hostPrint }

// accountName returns what a person knows the account by, "" if the site names nothing: a
// KeyedSubject says nothing to a person.
func (c *consent) accountName() string {
	if c.account == "" && !c.isKeyed() {
		return c.subject
	}
	return c.account
}

func (c *consent) connection() Connection {
	publisher := c.client.ID.Host()
	if c.client.AuthMethod.SelfRegistered() {
		publisher = SelfRegistered
	}
	return Connection{
		ID:            c.id,
		Subject:       c.subject,
		Account:       c.accountName(),
		TokenID:       c.tokenID,
		Client:        c.client.ID,
		ClientName:    c.client.Name,
		ClientHost:    publisher,
		Loopback:      c.redirect.Loopback(),
		PrivateScheme: c.redirect.PrivateScheme(),
		Resource:      c.resource,
		Scopes:        c.scopes,
		CreatedAt:     c.createdAt,
	}
}

// Authorization is an AuthorizationCode or an AccessGrant.
type Authorization interface {
	ID() string
	Client() Client
	HostPrint() Fingerprint
	// Connection returns the view for its person. active is false for a code that cannot be
	// redeemed and for a grant that has ended or expired.
	Connection(now time.Time) (shown Connection, active bool)
	// End withdraws the code or ends the grant. It reports whether it was active.
	End(reason EndReason, now time.Time) (wasActive bool)
}

// Authorizations are codes and grants, mostly those of one host token.
type Authorizations struct {
	Codes  []*AuthorizationCode
	Grants []*AccessGrant
}

// All returns the codes, then the grants.
func (a Authorizations) All() (all []Authorization) {
	for _, code := range a.Codes {
		all = append(all, code)
	}
	for _, grant := range a.Grants {
		all = append(all, grant)
	}
	return all
}

// Connection is Authorization.Connection with the name of the server.
func (s *Settings) Connection(of Authorization, now time.Time) (shown Connection, active bool) {
	shown, active = of.Connection(now)
	shown.ResourceName = s.NameOf(shown.Resource)
	return shown, active
}

// Connections returns the views of the active authorizations, the oldest first.
func (a Authorizations) Connections(settings *Settings, now time.Time) (connections []Connection) {
	for _, authorization := range a.All() {
		if shown, active := settings.Connection(authorization, now); active {
			connections = append(connections, shown)
		}
	}
	slices.SortStableFunc(connections, func(a, b Connection) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return connections
}

// End ends the chosen ones and returns the ids of those that were active.
func (a Authorizations) End(chosen func(id string) bool, reason EndReason, now time.Time) (ended []string) {
	for _, authorization := range a.All() {
		if chosen(authorization.ID()) && authorization.End(reason, now) {
			ended = append(ended, authorization.ID())
		}
	}
	return ended
}

// Surplus returns the ids of the authorizations of one host token beyond the limit: expired ones
// first, then the least recently used, and never newID.
func (a Authorizations) Surplus(newID string, limit int, now time.Time) map[string]bool {
	if len(a.Codes)+len(a.Grants) <= limit {
		return nil
	}
	others := slices.DeleteFunc(a.All(), func(one Authorization) bool { return one.ID() == newID })
	slices.SortStableFunc(others, func(one, other Authorization) int {
		return lastSeen(one, now).Compare(lastSeen(other, now))
	})
	surplus := map[string]bool{}
	for _, one := range others[:min(len(others), len(a.Codes)+len(a.Grants)-limit)] {
		surplus[one.ID()] = true
	}
	return surplus
}

// lastSeen returns Connection.LastSeen of an active authorization, and zero for any other.
func lastSeen(one Authorization, now time.Time) time.Time {
	shown, active := one.Connection(now)
	if !active {
		return time.Time{}
	}
	return shown.LastSeen()
}

// Connection describes an active grant, or a code that is not redeemed yet, to its person and to
// the operator.
type Connection struct {
	ID            string
	Subject       string // the person's name at the site
	Account       string // the name of the account for people; "" if the site names none
	TokenID       string // Principal.TokenID; "" if the site names none
	Client        ClientID
	ClientName    string // the client's own claim
	ClientHost    string // the host of the client_id, or SelfRegistered
	Loopback      bool   // the redirect URI is a program on the person's computer
	PrivateScheme bool   // the redirect URI is an installed app
	Resource      Resource
	ResourceName  string // "" if the resource is not configured any more
	Scopes        Scopes
	Waiting       bool // a code that is not redeemed
	CreatedAt     time.Time
	LastUsedAt    time.Time // to the minute; zero when it was never used
	EndsBy        time.Time // expiry, unless the client refreshes or redeems it
	EndsAtLatest  time.Time // expiry that no refresh moves
}

// Connection implements Authorization.
func (g *AccessGrant) Connection(now time.Time) (shown Connection, active bool) {
	shown = g.connection()
	shown.LastUsedAt, shown.EndsBy = g.lastUse.At, g.idleExpiresAt
	shown.EndsAtLatest = g.expiresAt
	if !g.scopes.Has(OfflineAccess) { // the client cannot refresh
		shown.EndsAtLatest = g.idleExpiresAt
	}
	return shown, g.active(now)
}

// LastSeen returns when the connection was last used or, if never, created.
func (c Connection) LastSeen() time.Time {
	if c.LastUsedAt.IsZero() {
		return c.CreatedAt
	}
	return c.LastUsedAt
}

const connectionsPurpose = "connections"

// SealConnections seals a pasted host token with its fingerprints for the forms of the connections
// page.
func SealConnections(prints []Fingerprint, host HostToken, settings *Settings, now time.Time) (string, error) {
	var joined strings.Builder
	for _, print := range prints {
		joined.WriteString(hex.EncodeToString(print[:]))
	}
	return sealValues(settings, connectionsPurpose, now, "prints", joined.String(), "token", host.Reveal())
}

// OpenConnections opens what SealConnections has sealed. It refuses like OpenTicket, and with
// ExpiredTicket also a form from before the server secret was replaced, because its fingerprints do
// not match newer grants.
func OpenConnections(sealed string, settings *Settings, now time.Time) (prints []Fingerprint, host HostToken,
	err error) {
	sealers, err := settings.Keys.Sealers(seal.Binding{Kind: connectionsPurpose, Owner: settings.Issuer})
	if err != nil {
		return nil, HostToken{}, err
	}
	values, sealedAt, err := openValuesWith(sealers, sealed)
	if err != nil {
		return nil, HostToken{}, err
	}
	_, _, otherSecret := openValuesWith(sealers[:1], sealed) // with the newest server secret alone
	if otherSecret != nil || expired(sealedAt.Add(TicketTTL), now) {
		return nil, HostToken{}, Refuse(ExpiredTicket, "B4", "the form is too old")
	}
	joined, err := hex.DecodeString(values.Get("prints"))
	if err != nil {
		return nil, HostToken{}, fmt.Errorf("reading an opened form: %w", err)
	}
	for print := range slices.Chunk(joined, len(Fingerprint{})) {
		prints = append(prints, Fingerprint(print))
	}
	return prints, HostToken{conceal(values.Get("token"))}, nil
}
