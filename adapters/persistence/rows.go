package persistence

import (
	"time"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/domain/oauth"
)

// codeRow is an oauth.CodeSnapshot with tags. The types convert into each other, so that a new
// field of one breaks the build.
type codeRow struct {
	ID            string `gorm:"primaryKey"`
	Digest        []byte
	CodeChallenge string
	ClientID      string
	ClientName    string
	AuthMethod    string
	RedirectURI   string
	Resource      string
	Scopes        string
	Subject       string
	Roles         string
	State         string
	EndReason     string
	CreatedAt     time.Time `gorm:"serializer:pasteport_millis;autoCreateTime:false"`
	ExpiresAt     time.Time `gorm:"serializer:pasteport_millis"`
	RedeemedAt    time.Time `gorm:"serializer:pasteport_millis"`
	WithdrawnAt   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter   time.Time `gorm:"serializer:pasteport_millis"`
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
}

// TableName implements GORM's Tabler.
func (codeRow) TableName() string { return "authorization_codes" }

func (c codeRow) restore() *oauth.AuthorizationCode { return oauth.RestoreCode(oauth.CodeSnapshot(c)) }

var codeTable = mapper.NewTable(codeRow{}.TableName(),
	mapper.Column("id", func(c *codeRow) any { return &c.ID }),
	mapper.Column("digest", func(c *codeRow) any { return &c.Digest }),
	mapper.Column("code_challenge", func(c *codeRow) any { return &c.CodeChallenge }),
	mapper.Column("client_id", func(c *codeRow) any { return &c.ClientID }),
	mapper.Column("client_name", func(c *codeRow) any { return &c.ClientName }),
	mapper.Column("auth_method", func(c *codeRow) any { return &c.AuthMethod }),
	mapper.Column("redirect_uri", func(c *codeRow) any { return &c.RedirectURI }),
	mapper.Column("resource", func(c *codeRow) any { return &c.Resource }),
	mapper.Column("scopes", func(c *codeRow) any { return &c.Scopes }),
	mapper.Column("subject", func(c *codeRow) any { return &c.Subject }),
	mapper.Column("roles", func(c *codeRow) any { return &c.Roles }),
	mapper.Column("state", func(c *codeRow) any { return &c.State }),
	mapper.Column("end_reason", func(c *codeRow) any { return &c.EndReason }),
	mapper.Column("created_at", func(c *codeRow) any { return (*mapper.Moment)(&c.CreatedAt) }),
	mapper.Column("expires_at", func(c *codeRow) any { return (*mapper.Moment)(&c.ExpiresAt) }),
	mapper.Column("redeemed_at", func(c *codeRow) any { return (*mapper.Moment)(&c.RedeemedAt) }),
	mapper.Column("withdrawn_at", func(c *codeRow) any { return (*mapper.Moment)(&c.WithdrawnAt) }),
	mapper.Column("forget_after", func(c *codeRow) any { return (*mapper.Moment)(&c.ForgetAfter) }),
	mapper.Column("host_print", func(c *codeRow) any { return &c.HostPrint }),
	mapper.Column("host_box", func(c *codeRow) any { return &c.HostBox }),
	mapper.Column("host_wrap", func(c *codeRow) any { return &c.HostWrap }),
)

// grantRow is an oauth.GrantSnapshot with tags. The types convert into each other, so that a new
// field of one breaks the build.
type grantRow struct {
	ID            string `gorm:"primaryKey"`
	ClientID      string
	ClientName    string
	AuthMethod    string
	RedirectURI   string
	Resource      string
	Scopes        string
	Subject       string
	Roles         string
	State         string
	EndReason     string
	CreatedAt     time.Time `gorm:"serializer:pasteport_millis;autoCreateTime:false"`
	EndedAt       time.Time `gorm:"serializer:pasteport_millis"`
	RevokedAt     time.Time `gorm:"serializer:pasteport_millis"`
	LastUsedAt    time.Time `gorm:"serializer:pasteport_millis"`
	LastUsedToken uint32
	VerifiedAt    time.Time `gorm:"serializer:pasteport_millis"`
	IdleEnd       time.Time `gorm:"serializer:pasteport_millis"`
	AbsoluteEnd   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter   time.Time `gorm:"serializer:pasteport_millis"`
	Generation    uint32
	RefreshDigest []byte
	Rotations     []oauth.RotationSnapshot `gorm:"serializer:pasteport_tokens"`
	IssuedAccess  uint32
	AccessTokens  []oauth.AccessTokenSnapshot `gorm:"serializer:pasteport_tokens"`
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
}

// TableName implements GORM's Tabler.
func (grantRow) TableName() string { return "grants" }

func (g grantRow) restore() *oauth.AccessGrant { return oauth.RestoreGrant(oauth.GrantSnapshot(g)) }

var grantTable = mapper.NewTable(grantRow{}.TableName(),
	mapper.Column("id", func(g *grantRow) any { return &g.ID }),
	mapper.Column("client_id", func(g *grantRow) any { return &g.ClientID }),
	mapper.Column("client_name", func(g *grantRow) any { return &g.ClientName }),
	mapper.Column("auth_method", func(g *grantRow) any { return &g.AuthMethod }),
	mapper.Column("redirect_uri", func(g *grantRow) any { return &g.RedirectURI }),
	mapper.Column("resource", func(g *grantRow) any { return &g.Resource }),
	mapper.Column("scopes", func(g *grantRow) any { return &g.Scopes }),
	mapper.Column("subject", func(g *grantRow) any { return &g.Subject }),
	mapper.Column("roles", func(g *grantRow) any { return &g.Roles }),
	mapper.Column("state", func(g *grantRow) any { return &g.State }),
	mapper.Column("end_reason", func(g *grantRow) any { return &g.EndReason }),
	mapper.Column("created_at", func(g *grantRow) any { return (*mapper.Moment)(&g.CreatedAt) }),
	mapper.Column("ended_at", func(g *grantRow) any { return (*mapper.Moment)(&g.EndedAt) }),
	mapper.Column("revoked_at", func(g *grantRow) any { return (*mapper.Moment)(&g.RevokedAt) }),
	mapper.Column("last_used_at", func(g *grantRow) any { return (*mapper.Moment)(&g.LastUsedAt) }),
	mapper.Column("last_used_token", func(g *grantRow) any { return &g.LastUsedToken }),
	mapper.Column("verified_at", func(g *grantRow) any { return (*mapper.Moment)(&g.VerifiedAt) }),
	mapper.Column("idle_end", func(g *grantRow) any { return (*mapper.Moment)(&g.IdleEnd) }),
	mapper.Column("absolute_end", func(g *grantRow) any { return (*mapper.Moment)(&g.AbsoluteEnd) }),
	mapper.Column("forget_after", func(g *grantRow) any { return (*mapper.Moment)(&g.ForgetAfter) }),
	mapper.Column("generation", func(g *grantRow) any { return &g.Generation }),
	mapper.Column("refresh_digest", func(g *grantRow) any { return &g.RefreshDigest }),
	mapper.Column("rotations", func(g *grantRow) any { return (*rotations)(&g.Rotations) }),
	mapper.Column("issued_access", func(g *grantRow) any { return &g.IssuedAccess }),
	mapper.Column("access_tokens", func(g *grantRow) any { return (*accessTokens)(&g.AccessTokens) }),
	mapper.Column("host_print", func(g *grantRow) any { return &g.HostPrint }),
	mapper.Column("host_box", func(g *grantRow) any { return &g.HostBox }),
	mapper.Column("host_wrap", func(g *grantRow) any { return &g.HostWrap }),
)

// assertionRow is a client assertion that was used.
type assertionRow struct {
	Digest      []byte    `gorm:"primaryKey"`
	ForgetAfter time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (assertionRow) TableName() string { return "used_assertions" }
