package persistence

import (
	"time"

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
