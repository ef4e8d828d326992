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
	Account       string
	TokenID       string
	Label         string
	Roles         string
	State         string
	EndReason     string
	CreatedAt     time.Time `gorm:"serializer:pasteport_millis;autoCreateTime:false"`
	ExpiresAt     time.Time `gorm:"serializer:pasteport_millis"`
	GrantEnd      time.Time `gorm:"serializer:pasteport_millis"`
	RedeemedAt    time.Time `gorm:"serializer:pasteport_millis"`
	WithdrawnAt   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter   time.Time `gorm:"serializer:pasteport_millis"`
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
	HostKey       []byte
	HostNew       []byte
	Tools         string
}

// TableName implements GORM's Tabler.
func (codeRow) TableName() string { return "authorization_codes" }

func (c codeRow) restore() *oauth.AuthorizationCode { return oauth.RestoreCode(oauth.CodeSnapshot(c)) }

var codeTable = mapper.NewTable[codeRow](codeRow{}.TableName(), nil)

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
	Account       string
	TokenID       string
	Label         string
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
	HostKey       []byte
	HostNew       []byte
	Tools         string
}

// TableName implements GORM's Tabler.
func (grantRow) TableName() string { return "grants" }

func (g grantRow) restore() *oauth.AccessGrant { return oauth.RestoreGrant(oauth.GrantSnapshot(g)) }

var grantTable = mapper.NewTable[grantRow](grantRow{}.TableName(), encodedField)

// assertionRow is a client assertion that was used.
type assertionRow struct {
	Digest      []byte    `gorm:"primaryKey"`
	ForgetAfter time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (assertionRow) TableName() string { return "used_assertions" }
