package oauth

import (
	"slices"
	"strings"
	"time"
)

// IssuedCode is the State of a code that can be redeemed or withdrawn.
const IssuedCode = string(codeIssued)

// CodeSnapshot is an AuthorizationCode as a store keeps it. Bytes are nil, text is "" and times are zero where there is nothing.
// Times are UTC with milliseconds. Restoring applies no rule.
type CodeSnapshot struct {
	ID            string
	Digest        []byte
	CodeChallenge string
	ClientID      string
	ClientName    string
	AuthMethod    string
	RedirectURI   string
	Resource      string
	Scopes        string // separated by spaces
	Subject       string
	Roles         string // separated by line feeds
	State         string
	EndReason     string
	CreatedAt     time.Time
	ExpiresAt     time.Time
	RedeemedAt    time.Time
	WithdrawnAt   time.Time
	ForgetAfter   time.Time
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
}

// HasKnownState reports whether this version knows the state.
func (s CodeSnapshot) HasKnownState() bool {
	return slices.Contains([]codeState{codeIssued, codeRedeemed, codeWithdrawn}, codeState(s.State))
}

// Snapshot returns the state of the code. Its bytes are shared with the code and must not be changed.
func (c *AuthorizationCode) Snapshot() CodeSnapshot {
	return CodeSnapshot{
		ID: c.id, Digest: c.digest[:], CodeChallenge: c.challenge.encoded, ClientID: c.client.raw, ClientName: c.clientName, AuthMethod: string(c.authMethod),
		RedirectURI: c.redirect.raw, Resource: c.resource.canonical, Scopes: c.scopes.String(), Subject: c.subject, Roles: strings.Join(c.roles, "\n"),
		State: string(c.state), EndReason: string(c.endReason), CreatedAt: c.createdAt, ExpiresAt: c.expiresAt, RedeemedAt: c.redeemedAt,
		WithdrawnAt: c.withdrawnAt, ForgetAfter: c.forgetAfter(), HostPrint: c.hostPrint.Bytes(), HostBox: c.host.box, HostWrap: c.host.wrap,
	}
}

// RestoreCode rebuilds a code.
func RestoreCode(s CodeSnapshot) *AuthorizationCode {
	c := &AuthorizationCode{
		consent: consent{
			id: s.ID, client: RestoreClientID(s.ClientID), clientName: s.ClientName, authMethod: AuthMethod(s.AuthMethod), redirect: RestoreRedirectURI(s.RedirectURI),
			resource: NewResource(s.Resource), scopes: restoreScopes(s.Scopes), subject: s.Subject, roles: restoreRoles(s.Roles), createdAt: s.CreatedAt,
		},
		challenge: RestoreCodeChallenge(s.CodeChallenge), state: codeState(s.State), endReason: EndReason(s.EndReason),
		expiresAt: s.ExpiresAt, redeemedAt: s.RedeemedAt, withdrawnAt: s.WithdrawnAt, host: sealedHostToken{box: s.HostBox, wrap: s.HostWrap},
	}
	copy(c.digest[:], s.Digest)
	copy(c.hostPrint[:], s.HostPrint)
	return c
}

// GrantSnapshot is an AccessGrant as a store keeps it. Bytes are nil, text is "" and times are zero where there is nothing.
// Times are UTC with milliseconds. Restoring applies no rule.
type GrantSnapshot struct {
	ID            string
	ClientID      string
	ClientName    string
	AuthMethod    string
	RedirectURI   string
	Resource      string
	Scopes        string // separated by spaces
	Subject       string
	Roles         string // separated by line feeds
	State         string
	EndReason     string
	CreatedAt     time.Time
	EndedAt       time.Time
	LastUsedAt    time.Time
	VerifiedAt    time.Time
	IdleEnd       time.Time
	AbsoluteEnd   time.Time
	ForgetAfter   time.Time
	Generation    int
	RefreshDigest []byte // of the newest refresh token, from which Predecessor leads to all others; nil also in a row of an earlier version
	SuccessorBox  []byte
	GraceEnd      time.Time // DeleteExpired clears the SuccessorBox after it
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
}

// HasKnownState reports whether this version knows the state.
func (s GrantSnapshot) HasKnownState() bool {
	return slices.Contains([]grantState{grantActive, grantEnded}, grantState(s.State))
}

// SecretSnapshot is an access or refresh token of a grant as a store keeps it.
type SecretSnapshot struct {
	Digest      []byte
	Grant       string
	Kind        string
	Generation  int    // of a refresh token, from 1
	Predecessor []byte // of a refresh token, the digest of the one that it replaced
	Scopes      string // of an access token that has fewer than its grant; "" means all
	HostWrap    []byte // of an access token that can open the host token
	RevokedAt   time.Time
	ForgetAfter time.Time // of an access token when it expires; zero for a refresh token, which is deleted with its grant
}

// Snapshot returns the state of the grant and of its loaded secrets. Its bytes are shared with the grant and must not be changed.
func (g *AccessGrant) Snapshot() (GrantSnapshot, []SecretSnapshot) {
	secrets := make([]SecretSnapshot, 0, len(g.secrets))
	for i := range g.secrets {
		s := &g.secrets[i]
		secrets = append(secrets, SecretSnapshot{
			Digest: s.digest[:], Grant: g.id, Kind: string(s.kind), Generation: s.generation, Predecessor: s.predecessor.bytes(), Scopes: s.scopes.String(),
			HostWrap: s.wrap, RevokedAt: s.revokedAt, ForgetAfter: s.forgetAfter,
		})
	}
	return GrantSnapshot{
		ID: g.id, ClientID: g.client.raw, ClientName: g.clientName, AuthMethod: string(g.authMethod), RedirectURI: g.redirect.raw, Resource: g.resource.canonical,
		Scopes: g.scopes.String(), Subject: g.subject, Roles: strings.Join(g.roles, "\n"),
		State: string(g.state), EndReason: string(g.endReason),
		CreatedAt: g.createdAt, EndedAt: g.endedAt, LastUsedAt: g.lastUsedAt, VerifiedAt: g.verifiedAt, IdleEnd: g.idleExpiresAt, AbsoluteEnd: g.expiresAt, ForgetAfter: g.forgetAfter(),
		Generation: g.generation, RefreshDigest: g.refresh.bytes(), SuccessorBox: g.successor, GraceEnd: g.graceEndsAt,
		HostPrint: g.hostPrint.Bytes(), HostBox: g.host.box, HostWrap: g.host.wrap,
	}, secrets
}

// RestoreGrant rebuilds a grant with some of its secrets.
func RestoreGrant(s GrantSnapshot, secrets ...SecretSnapshot) *AccessGrant {
	g := &AccessGrant{
		consent: consent{
			id: s.ID, client: RestoreClientID(s.ClientID), clientName: s.ClientName, authMethod: AuthMethod(s.AuthMethod), redirect: RestoreRedirectURI(s.RedirectURI),
			resource: NewResource(s.Resource), scopes: restoreScopes(s.Scopes), subject: s.Subject, roles: restoreRoles(s.Roles), createdAt: s.CreatedAt,
		},
		state: grantState(s.State), endReason: EndReason(s.EndReason),
		endedAt: s.EndedAt, lastUsedAt: s.LastUsedAt, verifiedAt: s.VerifiedAt, idleExpiresAt: s.IdleEnd, expiresAt: s.AbsoluteEnd,
		generation: s.Generation, successor: s.SuccessorBox, graceEndsAt: s.GraceEnd,
		host: sealedHostToken{box: s.HostBox, wrap: s.HostWrap},
	}
	copy(g.refresh[:], s.RefreshDigest)
	copy(g.hostPrint[:], s.HostPrint)
	for _, secret := range secrets {
		g.secrets = append(g.secrets, restoreSecret(secret))
	}
	return g
}

// Copy returns an independent grant. It shares the slices that a grant never changes in place.
func (g *AccessGrant) Copy() *AccessGrant {
	other := *g
	other.secrets = slices.Clone(g.secrets)
	return &other
}

func restoreSecret(s SecretSnapshot) grantSecret {
	held := grantSecret{
		kind: SecretKind(s.Kind), generation: s.Generation, scopes: restoreScopes(s.Scopes),
		wrap: s.HostWrap, revokedAt: s.RevokedAt, forgetAfter: s.ForgetAfter,
	}
	copy(held.digest[:], s.Digest)
	copy(held.predecessor[:], s.Predecessor)
	return held
}

func restoreScopes(text string) Scopes { return setOf(strings.Fields(text)) }

func restoreRoles(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
