package oauth

import (
	"fmt"
	"io"
	"slices"
	"time"
)

type grantState string

const (
	pending grantState = "pending"
	active  grantState = "active"
	ended   grantState = "ended"
)

// EndReason says why a grant ended, for logs and for the connections page.
type EndReason string

// The reasons of I12.
const (
	EndedByCodeReplay EndReason = "code_replayed"
	EndedByReuse      EndReason = "refresh_reused"
	EndedByRevocation EndReason = "revoked_by_client"
	EndedByHostToken  EndReason = "host_token_invalid"
	EndedByLostKey    EndReason = "key_lost"
	EndedByHost       EndReason = "ended_by_host"
	EndedByPerson     EndReason = "ended_by_person"
	EndedByOperator   EndReason = "ended_by_operator"
	EndedByLimit      EndReason = "ended_by_limit"
)

// How long a grant stays on record at least: a spent code must be known as spent for a day (D19), an ended grant for an audit (H6).
const (
	codeMemory       = 24 * time.Hour
	endedGrantMemory = 30 * 24 * time.Hour
)

// AccessGrant is what a person allowed one client: the code that was issued for it, and once that is redeemed the family of
// tokens. Every change goes through a verb that refuses by itself. Two of them are two only by Copy: an assignment of what is behind the
// pointer would leave both with one state.
type AccessGrant struct {
	*facts
	shared bool // with copies: a verb makes them its own before it changes any
}

// facts are what is known of a grant.
type facts struct {
	id          string
	client      ClientID
	clientName  string
	authMethod  AuthMethod
	redirect    RedirectURI
	resource    Resource
	scopes      Scopes
	subject     string
	roles       []string
	state       grantState
	endReason   EndReason
	createdAt   time.Time
	endedAt     time.Time
	lastUsedAt  time.Time
	verifiedAt  time.Time // when the site last confirmed the host token
	idleEnd     time.Time // no refresh after it; without refresh tokens the end of the access token
	absoluteEnd time.Time
	code        issuedCode
	generation  int         // of the newest refresh token
	refresh     Digest      // of the newest refresh token
	successor   []byte      // the newest refresh token, sealed for the holder of the one before it (J9)
	graceEnd    time.Time   // the one before it is reused from here on (D27)
	hostPrint   Fingerprint // zero once the grant has ended, so that GrantsOf returns only living grants
	host        sealedHost
	secrets     []heldSecret
}

// heldSecret is a secret of the grant as the store knows it.
type heldSecret struct {
	digest      Digest
	kind        SecretKind
	generation  int
	predecessor Digest // the refresh token that this one replaced
	scopes      Scopes
	wrap        []byte // of an access token that can open the host token (J8)
	revokedAt   time.Time
	forgetAfter time.Time // never for a refresh token, which goes with the grant: it has to be known as spent for as long (D27)
}

// Approval is a person's consent: what they were shown, the host token that the site confirmed, and the code to issue.
type Approval struct {
	Ticket    *Ticket
	Host      HostToken
	Principal Principal
	Code      Secret
	Chance    io.Reader // draws the data key of the sealed host token
}

// Approve opens a pending grant and issues its code (I1). It refuses with AccessDenied when the host token may grant nothing
// of what is asked (B10).
func Approve(a Approval, settings *Settings, now time.Time) (*AccessGrant, error) {
	request := a.Ticket.request
	scopes := request.scopes.Intersect(settings.ceiling(a.Principal))
	if scopes.Without(OfflineAccess).Empty() {
		return nil, Refuse(AccessDenied, "B10", "the token may not grant what the client asks for")
	}
	print, err := settings.Keys.Fingerprint(a.Host)
	if err != nil {
		return nil, err
	}
	g := &AccessGrant{facts: &facts{
		id: a.Ticket.id, client: request.client, clientName: request.clientName, authMethod: request.authMethod, redirect: request.redirect,
		resource: request.resource, scopes: scopes, subject: a.Principal.Subject, roles: slices.Clone(a.Principal.Roles),
		state: pending, createdAt: now, verifiedAt: now, absoluteEnd: now.Add(settings.GrantTTL), hostPrint: print,
		code: issuedCode{digest: a.Code.Digest(), challenge: request.challenge, expiresAt: now.Add(settings.AuthCodeTTL)},
	}}
	g.idleEnd = g.code.expiresAt
	g.hold(a.Code, heldSecret{kind: CodeSecret, forgetAfter: now.Add(codeMemory)})
	if !scopes.Has(OfflineAccess) && !settings.opensHostInUse() {
		return g, nil
	}
	g.host, err = sealHost(a.Host, a.Code, g.id, a.Chance, settings.Keys)
	return g, err
}

// Supersedes lets a second approval of one ticket replace the first (B13, I5). It returns ErrCodeStands when both have the same code and
// the first one's still holds, and refuses with UsedTicket once a code of that ticket was redeemed or its grant was ended.
func (g *AccessGrant) Supersedes(earlier *AccessGrant) error {
	switch {
	case earlier.state != pending:
		return Refuse(UsedTicket, "B13", "this form has been used already")
	case earlier.code.digest == g.code.digest && !expired(earlier.code.expiresAt, g.createdAt):
		return ErrCodeStands
	}
	return nil
}

// Admits returns who calls with the access token (G7, G8); it refuses with InvalidToken, the same for every reason.
func (g *AccessGrant) Admits(token Digest, resource Resource, now time.Time) (Caller, error) {
	held, found := g.held(token)
	switch {
	case !found, held.kind != AccessTokenSecret, !held.revokedAt.IsZero(), expired(held.forgetAfter, now):
		return Caller{}, refuseToken("G7", "revoked, expired or no access token")
	case g.state != active:
		return Caller{}, refuseToken("G7", "worthless because its grant has ended: "+string(g.endReason))
	case g.resource != resource:
		return Caller{}, refuseToken("G8", "issued for another resource")
	case g.scopesOf(held).Empty():
		return Caller{}, refuseToken("G7", "left without any scope that its grant still has")
	}
	return Caller{
		Grant: g.id, Client: g.client, Subject: g.subject, Roles: slices.Clone(g.roles),
		Scopes: g.scopesOf(held), ExpiresAt: held.forgetAfter,
	}, nil
}

// refuseToken tells the client one thing and the log another.
func refuseToken(rule, reason string) error {
	return Refuse(InvalidToken, rule, "The access token is invalid or has expired", fmt.Errorf("the access token is %s", reason))
}

// UnknownToken is the refusal for a bearer that belongs to no grant; a client cannot tell it from any other (G7).
func UnknownToken() error { return refuseToken("G7", "unknown") }

// UnopeningToken is the refusal for an access token that cannot open the host token, such as one from before access tokens could
// (U6).
func UnopeningToken() error { return refuseToken("U6", "unable to open the host token") }

// Revoke ends what the client asks to revoke: with a refresh token the grant, with an access token only that token (E6, E7).
// A token of another client and a code are left alone without a word (E2, E8). It reports whether the grant ended.
func (g *AccessGrant) Revoke(token Digest, client string, now time.Time) (grantEnded bool) {
	g.own()
	held, found := g.held(token)
	if !found || (client != "" && client != g.client.raw) {
		return false
	}
	switch held.kind {
	case RefreshTokenSecret:
		return g.End(EndedByRevocation, now)
	case AccessTokenSecret:
		if held.revokedAt.IsZero() {
			held.revokedAt, held.wrap = now, nil
		}
	}
	return false
}

// End ends the grant for good; all its tokens and boxes are worthless afterwards (I12). It reports whether it was still alive;
// one whose code was not exchanged in time, or that idled too long, was not (I4, I13).
func (g *AccessGrant) End(reason EndReason, now time.Time) bool {
	if g.state == ended {
		return false
	}
	g.own()
	alive := g.alive(now)
	g.state, g.endReason, g.endedAt = ended, reason, now
	g.host, g.hostPrint, g.successor = sealedHost{}, Fingerprint{}, nil
	for i := range g.secrets {
		g.secrets[i].wrap = nil
	}
	return alive
}

func (g *AccessGrant) alive(now time.Time) bool { return g.state != ended && !expired(g.idleEnd, now) }

// NotesUse reports whether Used has something to note.
func (g *AccessGrant) NotesUse(now time.Time) bool { return now.Sub(g.lastUsedAt) >= time.Minute }

// Used notes when the grant was last used, at most once a minute (G15).
func (g *AccessGrant) Used(now time.Time) {
	if g.NotesUse(now) {
		g.own()
		g.lastUsedAt = now
	}
}

// ID returns the grant's id, which is no secret and stays the same over refreshes.
func (g *AccessGrant) ID() string { return g.id }

// Resource returns the MCP server that the grant is for.
func (g *AccessGrant) Resource() Resource { return g.resource }

// Subject returns who stands behind the grant.
func (g *AccessGrant) Subject() string { return g.subject }

// HostPrint returns the fingerprint of the host token that the grant was made with, zero once the grant has ended.
func (g *AccessGrant) HostPrint() Fingerprint { return g.hostPrint }

// Client returns the client_id.
func (g *AccessGrant) Client() ClientID { return g.client }

// Scopes returns what is granted.
func (g *AccessGrant) Scopes() Scopes { return g.scopes }

// AuthMethod returns how its client proves who it is, ever since the person approved.
func (g *AccessGrant) AuthMethod() AuthMethod { return g.authMethod }

func (g *AccessGrant) hold(secret Secret, held heldSecret) {
	held.digest = secret.Digest()
	g.secrets = append(g.secrets, held)
}

func (g *AccessGrant) held(digest Digest) (*heldSecret, bool) {
	i := slices.IndexFunc(g.secrets, func(s heldSecret) bool { return s.digest == digest })
	if i < 0 {
		return nil, false
	}
	return &g.secrets[i], true
}

func (g *AccessGrant) scopesOf(token *heldSecret) Scopes {
	if token.scopes.Empty() {
		return g.scopes
	}
	return token.scopes.Intersect(g.scopes)
}

// endedForgetAfter returns when a grant that has ended is forgotten. A grant that ended for the limit before its code was redeemed is forgotten
// when the code would have expired, because one host token can make any number of them.
func (g *AccessGrant) endedForgetAfter() time.Time {
	if g.endReason == EndedByLimit && g.code.redeemedAt.IsZero() {
		return g.idleEnd
	}
	return g.endedAt.Add(endedGrantMemory)
}

// forgetAfter returns when nothing of the grant can matter any more, or up to an hour later: a store finds grants by it, and has to move
// each in its index that gets another one.
func (g *AccessGrant) forgetAfter() time.Time {
	end := g.idleEnd
	switch g.state {
	case active:
		end = end.Add(time.Hour - 1).Truncate(time.Hour)
	case ended:
		end = g.endedForgetAfter()
	}
	if known := g.code.redeemedAt.Add(codeMemory); end.Before(known) {
		return known // a spent code has to be known as spent (D19)
	}
	return end
}
