package oauth

import (
	"slices"
	"strings"
	"time"
)

// ActiveGrant is the State of a grant that has not ended.
const ActiveGrant = string(grantActive)

// GrantSnapshot is an AccessGrant as a store keeps it. Bytes are nil, text is "" and times are zero
// where there is nothing. Times are UTC with milliseconds. Restoring applies no rule.
type GrantSnapshot struct {
	ID            string
	Version       int64 // for a store that compares and swaps: it increments Version with each change
	ClientID      string
	ClientName    string
	AuthMethod    string
	RedirectURI   string
	Resource      string
	Scopes        string // separated by spaces
	Subject       string
	Account       string
	TokenID       string
	Roles         string // separated by line feeds
	State         string
	EndReason     string
	CreatedAt     time.Time
	EndedAt       time.Time
	RevokedAt     time.Time // when a token was revoked last; EndWatcher finds the grant by it
	LastUsedAt    time.Time // a UseRecorder writes it with RecordUse only
	LastUsedToken uint32    // the largest number of an access token that was used; as LastUsedAt
	VerifiedAt    time.Time
	IdleEnd       time.Time
	AbsoluteEnd   time.Time
	ForgetAfter   time.Time
	Generation    uint32
	RefreshDigest []byte     // of the newest refresh token
	Rotations     []Rotation // at most four, the newest last
	IssuedAccess  uint32
	AccessTokens  []AccessToken // at most eight, the newest last
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
	HostKey       []byte // public half of the key pair of the data key
	HostNew       []byte // host token that replaced that of HostBox, sealed to HostKey
	Tools         string // ToolPins
}

// HasKnownState reports whether this version knows the state.
func (s GrantSnapshot) HasKnownState() bool {
	return slices.Contains([]grantState{grantActive, grantEnded}, grantState(s.State))
}

// Snapshot returns the state of the grant. Its bytes are shared with the grant
// and must not be changed.
func (g *AccessGrant) Snapshot() GrantSnapshot {
	return GrantSnapshot{
		ID:            g.id,
		Version:       g.version,
		ClientID:      g.client.raw,
		ClientName:    g.clientName,
		AuthMethod:    string(g.authMethod),
		RedirectURI:   g.redirect.raw,
		Resource:      g.resource.canonical,
		Scopes:        g.scopes.String(),
		Subject:       g.subject,
		Account:       g.account,
		TokenID:       g.tokenID,
		Roles:         strings.Join(g.roles, "\n"),
		State:         string(g.state),
		EndReason:     string(g.endReason),
		CreatedAt:     g.createdAt,
		EndedAt:       g.endedAt,
		RevokedAt:     g.revokedAt,
		LastUsedAt:    g.lastUse.At,
		LastUsedToken: g.lastUse.Access,
		VerifiedAt:    g.verifiedAt,
		IdleEnd:       g.idleExpiresAt,
		AbsoluteEnd:   g.expiresAt,
		ForgetAfter:   g.forgetAfter(),
		Generation:    g.generation,
		RefreshDigest: g.refresh.bytes(),
		Rotations:     slices.Clone(g.rotations),
		IssuedAccess:  g.issuedAccess,
		AccessTokens:  slices.Clone(g.access),
		HostPrint:     g.hostPrint.Bytes(),
		HostBox:       g.host.box,
		HostWrap:      g.host.wrap,
		HostKey:       g.host.public,
		HostNew:       g.host.replacement,
		Tools:         g.tools.text,
	}
}

// RestoreGrant rebuilds a grant.
func RestoreGrant(s GrantSnapshot) *AccessGrant {
	g := &AccessGrant{
		consent: consent{
			id:         s.ID,
			client:     RestoreClientID(s.ClientID),
			clientName: s.ClientName,
			authMethod: AuthMethod(s.AuthMethod),
			redirect:   RestoreRedirectURI(s.RedirectURI),
			resource:   NewResource(s.Resource),
			scopes:     restoreScopes(s.Scopes),
			subject:    s.Subject,
			account:    s.Account,
			tokenID:    s.TokenID,
			roles:      restoreRoles(s.Roles),
			createdAt:  s.CreatedAt,
		},
		version:       s.Version,
		tools:         RestoreToolPins(s.Tools),
		state:         grantState(s.State),
		endReason:     EndReason(s.EndReason),
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
		host:          sealedHostToken{s.HostBox, s.HostWrap, s.HostKey, s.HostNew},
	}
	copy(g.refresh[:], s.RefreshDigest)
	copy(g.hostPrint[:], s.HostPrint)
	return g
}

// Copy returns an independent grant. It shares the slices that a grant never changes in place.
func (g *AccessGrant) Copy() *AccessGrant {
	other := *g
	other.access, other.rotations = slices.Clone(g.access), slices.Clone(g.rotations)
	return &other
}

func restoreScopes(text string) Scopes { return setOf(strings.Fields(text)) }

func restoreRoles(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
