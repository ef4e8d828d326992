package persistence

import (
	"time"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/domain/oauth"
)

// grantRow is an oauth.GrantSnapshot with tags. Both convert into each other, so a new field breaks the build and is not lost.
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
	LastUsedAt    time.Time `gorm:"serializer:pasteport_millis"`
	VerifiedAt    time.Time `gorm:"serializer:pasteport_millis"`
	IdleEnd       time.Time `gorm:"serializer:pasteport_millis"`
	AbsoluteEnd   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter   time.Time `gorm:"serializer:pasteport_millis"`
	CodeDigest    []byte
	CodeChallenge string
	CodeExpiresAt time.Time `gorm:"serializer:pasteport_millis"`
	RedeemedAt    time.Time `gorm:"serializer:pasteport_millis"`
	Generation    int
	RefreshDigest []byte
	SuccessorBox  []byte
	GraceEnd      time.Time `gorm:"serializer:pasteport_millis"`
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
}

// TableName implements GORM's Tabler.
func (grantRow) TableName() string { return "grants" }

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
	mapper.Column("last_used_at", func(g *grantRow) any { return (*mapper.Moment)(&g.LastUsedAt) }),
	mapper.Column("verified_at", func(g *grantRow) any { return (*mapper.Moment)(&g.VerifiedAt) }),
	mapper.Column("idle_end", func(g *grantRow) any { return (*mapper.Moment)(&g.IdleEnd) }),
	mapper.Column("absolute_end", func(g *grantRow) any { return (*mapper.Moment)(&g.AbsoluteEnd) }),
	mapper.Column("forget_after", func(g *grantRow) any { return (*mapper.Moment)(&g.ForgetAfter) }),
	mapper.Column("code_digest", func(g *grantRow) any { return &g.CodeDigest }),
	mapper.Column("code_challenge", func(g *grantRow) any { return &g.CodeChallenge }),
	mapper.Column("code_expires_at", func(g *grantRow) any { return (*mapper.Moment)(&g.CodeExpiresAt) }),
	mapper.Column("redeemed_at", func(g *grantRow) any { return (*mapper.Moment)(&g.RedeemedAt) }),
	mapper.Column("generation", func(g *grantRow) any { return &g.Generation }),
	mapper.Column("refresh_digest", func(g *grantRow) any { return &g.RefreshDigest }),
	mapper.Column("successor_box", func(g *grantRow) any { return &g.SuccessorBox }),
	mapper.Column("grace_end", func(g *grantRow) any { return (*mapper.Moment)(&g.GraceEnd) }),
	mapper.Column("host_print", func(g *grantRow) any { return &g.HostPrint }),
	mapper.Column("host_box", func(g *grantRow) any { return &g.HostBox }),
	mapper.Column("host_wrap", func(g *grantRow) any { return &g.HostWrap }),
)

// secretRow is an oauth.SecretSnapshot with tags.
type secretRow struct {
	Digest      []byte `gorm:"primaryKey"`
	Grant       string `gorm:"column:grant_id"`
	Kind        string
	Generation  int
	Predecessor []byte
	Scopes      string
	HostWrap    []byte
	RevokedAt   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (secretRow) TableName() string { return "secrets" }

var secretTable = mapper.NewTable(secretRow{}.TableName(),
	mapper.Column("digest", func(s *secretRow) any { return &s.Digest }),
	mapper.Column("grant_id", func(s *secretRow) any { return &s.Grant }),
	mapper.Column("kind", func(s *secretRow) any { return &s.Kind }),
	mapper.Column("generation", func(s *secretRow) any { return &s.Generation }),
	mapper.Column("predecessor", func(s *secretRow) any { return &s.Predecessor }),
	mapper.Column("scopes", func(s *secretRow) any { return &s.Scopes }),
	mapper.Column("host_wrap", func(s *secretRow) any { return &s.HostWrap }),
	mapper.Column("revoked_at", func(s *secretRow) any { return (*mapper.Moment)(&s.RevokedAt) }),
	mapper.Column("forget_after", func(s *secretRow) any { return (*mapper.Moment)(&s.ForgetAfter) }),
)

// isSpent reports that another secret of the grant has taken the place of this one.
func (s *secretRow) isSpent(of *grantRow) bool {
	switch oauth.SecretKind(s.Kind) {
	case oauth.CodeSecret:
		return !of.RedeemedAt.IsZero()
	case oauth.RefreshTokenSecret:
		return s.Generation != of.Generation
	}
	return false
}

// assertionRow is a client assertion that was used.
type assertionRow struct {
	Digest      []byte    `gorm:"primaryKey"`
	ForgetAfter time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (assertionRow) TableName() string { return "used_assertions" }

func (g grantRow) restore() *oauth.AccessGrant { return oauth.RestoreGrant(oauth.GrantSnapshot(g)) }

func restoreAll(rows []grantRow) []*oauth.AccessGrant {
	grants := make([]*oauth.AccessGrant, 0, len(rows))
	for _, row := range rows {
		grants = append(grants, row.restore())
	}
	return grants
}

func rowsOf(grant *oauth.AccessGrant) (grantRow, []*secretRow) {
	snapshot, held := grant.Snapshot()
	secrets := make([]*secretRow, 0, len(held))
	for i := range held {
		secrets = append(secrets, (*secretRow)(&held[i]))
	}
	return grantRow(snapshot), secrets
}
