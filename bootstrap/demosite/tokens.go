package demosite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/domain/oauth"
)

// firstEditor owns the sample articles and the token of EnsureEditorToken.
const firstEditor = "editor"

const (
	tokenPrefix = "demo_" // for people and secret scanners
	maxToken    = 4096    // bytes; the limit of the consent page
	maxOwner    = 100     // bytes
)

// tokenRow is a stored token: only its digest is stored.
type tokenRow struct {
	Digest []byte `gorm:"primaryKey"`
	Owner  string
	Role   string
}

// TableName implements GORM's schema.Tabler.
func (tokenRow) TableName() string { return "tokens" }

func newTokenRow(token, owner string, role Role) *tokenRow {
	return &tokenRow{Digest: digestOf(token), Owner: owner, Role: string(role)}
}

func digestOf(token string) []byte {
	digest := sha256.Sum256([]byte(token))
	return digest[:]
}

func newToken() string { return tokenPrefix + rand.Text() }

// EnsureEditorToken makes sure that the site has an editor. If token is not empty, it becomes an
// editor's token. Otherwise, if there is no editor yet, it creates a token and returns it; the site
// stores only the digest.
func (s *Site) EnsureEditorToken(ctx context.Context, token string) (created string, err error) {
	if token == "" {
		created, err = s.createEditor(ctx)
	} else {
		err = s.adoptEditor(ctx, token)
	}
	if err != nil {
		return "", fmt.Errorf("ensuring an editor's token: %w", err)
	}
	return created, nil
}

func (s *Site) createEditor(ctx context.Context) (created string, err error) {
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var editors int64
		err := tx.Model(&tokenRow{}).Where("role = ?", string(Editor)).Count(&editors).Error
		if err != nil || editors > 0 {
			return err
		}
		created = newToken()
		return tx.Create(newTokenRow(created, firstEditor, Editor)).Error
	})
	return created, err
}

func (s *Site) adoptEditor(ctx context.Context, token string) error {
	if err := CheckToken(token); err != nil {
		return err
	}
	known := clause.OnConflict{Columns: []clause.Column{{Name: "digest"}},
		DoUpdates: clause.AssignmentColumns([]string{"role"})}
	return s.db.WithContext(ctx).Clauses(known).Create(newTokenRow(token, firstEditor, Editor)).Error
}

// CheckToken returns an error for a token that EnsureEditorToken cannot use. The error does not
// contain the token.
func CheckToken(token string) error {
	if len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return refuse("a token is at most %d printable ASCII characters without spaces", maxToken)
	}
	return nil
}

// IssueToken creates a token for the owner and returns it; the site stores only the digest. An
// owner may have several tokens.
func (s *Site) IssueToken(ctx context.Context, owner string, role Role) (token string, err error) {
	switch {
	case strings.TrimSpace(owner) == "", len(owner) > maxOwner, strings.ContainsFunc(owner, unicode.IsControl):
		return "", refuse("an owner's name is 1 to %d bytes on one line", maxOwner)
	case !role.atLeast(Reader):
		return "", refuse("there is no role %q; the roles are %v", role, ranks)
	}
	token = newToken()
	if err := s.db.WithContext(ctx).Create(newTokenRow(token, owner, role)).Error; err != nil {
		return "", fmt.Errorf("issuing a token: %w", err)
	}
	return token, nil
}

// RevokeToken deletes the token. It returns oauth.ErrUnknownBearer if the token is unknown.
func (s *Site) RevokeToken(ctx context.Context, token string) error {
	deleted := s.db.WithContext(ctx).Where("digest = ?", digestOf(token)).Delete(&tokenRow{})
	switch {
	case deleted.Error != nil:
		return fmt.Errorf("revoking a token: %w", deleted.Error)
	case deleted.RowsAffected == 0:
		return fmt.Errorf("revoking a token: %w", oauth.ErrUnknownBearer)
	}
	return nil
}

// VerifyBearer implements oauth.BearerVerifier: the subject is the token's owner, and the only role
// is the token's.
func (s *Site) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	var row tokenRow
	err := s.db.WithContext(ctx).Where("digest = ?", digestOf(token)).Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return oauth.Principal{}, oauth.ErrUnknownBearer
	case err != nil:
		return oauth.Principal{}, fmt.Errorf("looking up a token: %w", err)
	}
	return oauth.Principal{Subject: row.Owner, Roles: []string{row.Role}}, nil
}

var _ oauth.BearerVerifier = (*Site)(nil)
