package oauth

import (
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/toolset"
)

// ConsentSnapshot has the fields that the snapshots of codes and grants share. A missing value is
// nil, "" or the zero time. Times are UTC with milliseconds. Restoring a snapshot applies no rule.
type ConsentSnapshot struct {
	ID          string
	Version     int64 // for a store that compares and swaps: it increments Version with each change
	ClientID    string
	ClientName  string
	AuthMethod  string
	RedirectURI string
	Resource    string
	Scopes      string // separated by spaces
	Subject     string
	Account     string
	TokenID     string
	Roles       string // separated by line feeds
	State       string
	EndReason   string
	CreatedAt   time.Time
	ForgetAfter time.Time
	HostPrint   []byte
	HostBox     []byte
	HostWrap    []byte
	HostKey     []byte // public half of the key pair of the data key
	HostNew     []byte // the host token that has replaced the one in HostBox, sealed to HostKey
}

// snapshot returns the state of the consent. Its bytes are shared with the consent.
func (c *consent) snapshot(forgetAfter time.Time) ConsentSnapshot {
	return ConsentSnapshot{
		ID:          c.id,
		Version:     c.version,
		ClientID:    c.client.ID.raw,
		ClientName:  c.client.Name,
		AuthMethod:  string(c.client.AuthMethod),
		RedirectURI: c.redirect.raw,
		Resource:    c.resource.canonical,
		Scopes:      c.scopes.String(),
		Subject:     c.subject,
		Account:     c.account,
		TokenID:     c.tokenID,
		Roles:       strings.Join(c.roles, "\n"),
		State:       string(c.state),
		EndReason:   string(c.endReason),
		CreatedAt:   c.createdAt,
		ForgetAfter: forgetAfter,
		HostPrint:   c.hostPrint.Bytes(),
		HostBox:     c.host.box,
		HostWrap:    c.host.wrap,
		HostKey:     c.host.public,
		HostNew:     c.host.replacement,
	}
}

func (s ConsentSnapshot) restore() consent {
	c := consent{
		id:        s.ID,
		version:   s.Version,
		client:    Client{ID: RestoreClientID(s.ClientID), Name: s.ClientName, AuthMethod: AuthMethod(s.AuthMethod)},
		redirect:  RedirectURI{s.RedirectURI},
		resource:  NewResource(s.Resource),
		scopes:    restoreScopes(s.Scopes),
		subject:   s.Subject,
		account:   s.Account,
		tokenID:   s.TokenID,
		state:     state(s.State),
		endReason: EndReason(s.EndReason),
		createdAt: s.CreatedAt,
		host:      sealedHostToken{s.HostBox, s.HostWrap, s.HostKey, s.HostNew},
	}
	if s.Roles != "" {
		c.roles = strings.Split(s.Roles, "\n")
	}
	copy(c.hostPrint[:], s.HostPrint)
	return c
}

func restoreScopes(text string) Scopes { return setOf(strings.Fields(text)) }

// CodeSnapshot is an AuthorizationCode as a store keeps it.
type CodeSnapshot struct {
	ConsentSnapshot
	Digest        []byte
	CodeChallenge string
	ExpiresAt     time.Time
	GrantEnd      time.Time
	RedeemedAt    time.Time
	WithdrawnAt   time.Time
}

// HasKnownState reports whether this version knows the state.
func (s CodeSnapshot) HasKnownState() bool {
	return slices.Contains([]state{codeIssued, codeRedeemed, codeWithdrawn}, state(s.State))
}

// Snapshot returns the state of the code. Its bytes are shared with the code and must not be
// changed.
func (c *AuthorizationCode) Snapshot() CodeSnapshot {
	return CodeSnapshot{
		ConsentSnapshot: c.snapshot(c.forgetAfter()),
		Digest:          c.digest[:],
		CodeChallenge:   c.challenge.encoded,
		ExpiresAt:       c.expiresAt,
		GrantEnd:        c.grantEnd,
		RedeemedAt:      c.redeemedAt,
		WithdrawnAt:     c.withdrawnAt,
	}
}

// RestoreCode rebuilds a code.
func RestoreCode(s CodeSnapshot) *AuthorizationCode {
	c := &AuthorizationCode{
		consent:     s.restore(),
		challenge:   codeChallenge{s.CodeChallenge},
		expiresAt:   s.ExpiresAt,
		grantEnd:    s.GrantEnd,
		redeemedAt:  s.RedeemedAt,
		withdrawnAt: s.WithdrawnAt,
	}
	copy(c.digest[:], s.Digest)
	return c
}

// GrantSnapshot is an AccessGrant as a store keeps it.
type GrantSnapshot struct {
	ConsentSnapshot
	EndedAt       time.Time
	RevokedAt     time.Time // when a token was revoked last; EndWatcher finds the grant by it
	LastUsedAt    time.Time // a UseRecorder takes it from a new grant, and later from RecordUse only
	LastUsedToken uint32    // the largest number of an access token that was used; written like LastUsedAt
	VerifiedAt    time.Time
	IdleEnd       time.Time
	AbsoluteEnd   time.Time
	Generation    uint32
	RefreshDigest []byte     // of the newest refresh token
	Rotations     []Rotation // at most four, the newest last
	IssuedAccess  uint32
	AccessTokens  []AccessToken // at most eight, the newest last
	Tools         string        // toolset.Pins
}

// HasKnownState reports whether this version knows the state.
func (s GrantSnapshot) HasKnownState() bool {
	return slices.Contains([]state{grantActive, grantEnded}, state(s.State))
}

// Snapshot returns the state of the grant. A store may keep it as it is: the grant never changes
// the bytes that it shares.
func (g *AccessGrant) Snapshot() GrantSnapshot {
	return GrantSnapshot{
		ConsentSnapshot: g.snapshot(g.forgetAfter()),
		EndedAt:         g.endedAt,
		RevokedAt:       g.revokedAt,
		LastUsedAt:      g.lastUse.At,
		LastUsedToken:   g.lastUse.Access,
		VerifiedAt:      g.verifiedAt,
		IdleEnd:         g.idleExpiresAt,
		AbsoluteEnd:     g.expiresAt,
		Generation:      g.generation,
		RefreshDigest:   g.refresh.bytes(),
		Rotations:       slices.Clone(g.rotations),
		IssuedAccess:    g.issuedAccess,
		AccessTokens:    slices.Clone(g.access),
		Tools:           g.tools.String(),
	}
}

// RestoreGrant rebuilds a grant.
func RestoreGrant(s GrantSnapshot) *AccessGrant {
	g := &AccessGrant{
		consent:       s.restore(),
		tools:         toolset.Restore(s.Tools),
		endedAt:       s.EndedAt,
		revokedAt:     s.RevokedAt,
		lastUse:       Use{At: s.LastUsedAt, Access: s.LastUsedToken},
		verifiedAt:    s.VerifiedAt,
		idleExpiresAt: s.IdleEnd,
		expiresAt:     s.AbsoluteEnd,
		generation:    s.Generation,
		rotations:     slices.Clone(s.Rotations),
		issuedAccess:  s.IssuedAccess,
		access:        slices.Clone(s.AccessTokens),
	}
	copy(g.refresh[:], s.RefreshDigest)
	return g
}

// Copy returns an independent grant. It shares the slices that a grant never changes in place.
func (g *AccessGrant) Copy() *AccessGrant {
	other := *g
	other.access, other.rotations = slices.Clone(g.access), slices.Clone(g.rotations)
	return &other
}
