package persistence

import (
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// accessTokenJSON is an access token in the column access_tokens. SCHEMA.md describes the members.
type accessTokenJSON struct {
	Number  uint32     `json:"n"`
	Digest  base64Text `json:"d"`
	Scopes  string     `json:"s,omitempty"`
	Wrap    base64Text `json:"w,omitempty"`
	Expires int64      `json:"e,omitempty"`
	Revoked int64      `json:"r,omitempty"`
}

// rotationJSON is a replaced refresh token in the column rotations.
type rotationJSON struct {
	Number   uint32     `json:"n"`
	Digest   base64Text `json:"d"`
	Access   uint32     `json:"a"`
	Box      base64Text `json:"b,omitempty"`
	Replaced int64      `json:"r,omitempty"`
}

// base64Text is bytes as base64url without padding, which is shorter than Go's own form in JSON.
type base64Text []byte

// MarshalText implements encoding.TextMarshaler.
func (b base64Text) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *base64Text) UnmarshalText(text []byte) (err error) {
	*b, err = base64.RawURLEncoding.AppendDecode(nil, text)
	return err
}

// accessTokens is a field for the column access_tokens.
type accessTokens struct{ of *[]oauth.AccessTokenSnapshot }

// Value implements driver.Valuer.
func (a accessTokens) Value() (driver.Value, error) {
	return encodeList(*a.of, func(t oauth.AccessTokenSnapshot) accessTokenJSON {
		return accessTokenJSON{
			Number:  t.Number,
			Digest:  t.Digest[:],
			Scopes:  t.Scopes,
			Wrap:    t.Wrap,
			Expires: toMillis(t.ExpiresAt),
			Revoked: toMillis(t.RevokedAt),
		}
	})
}

// Scan implements sql.Scanner.
func (a accessTokens) Scan(value any) (err error) {
	*a.of, err = decodeList(value, func(t accessTokenJSON) (oauth.AccessTokenSnapshot, error) {
		digest, err := toDigest(t.Digest)
		return oauth.AccessTokenSnapshot{
			Number:    t.Number,
			Digest:    digest,
			Scopes:    t.Scopes,
			Wrap:      t.Wrap,
			ExpiresAt: fromMillis(t.Expires),
			RevokedAt: fromMillis(t.Revoked),
		}, err
	})
	return err
}

// rotations is a field for the column rotations.
type rotations struct{ of *[]oauth.RotationSnapshot }

// Value implements driver.Valuer.
func (r rotations) Value() (driver.Value, error) {
	return encodeList(*r.of, func(r oauth.RotationSnapshot) rotationJSON {
		return rotationJSON{
			Number:   r.Number,
			Digest:   r.Digest[:],
			Access:   r.Access,
			Box:      r.Box,
			Replaced: toMillis(r.ReplacedAt),
		}
	})
}

// Scan implements sql.Scanner.
func (r rotations) Scan(value any) (err error) {
	*r.of, err = decodeList(value, func(r rotationJSON) (oauth.RotationSnapshot, error) {
		digest, err := toDigest(r.Digest)
		return oauth.RotationSnapshot{
			Number:     r.Number,
			Digest:     digest,
			Access:     r.Access,
			Box:        r.Box,
			ReplacedAt: fromMillis(r.Replaced),
		}, err
	})
	return err
}

// encodeList returns JSON, and "" for an empty list.
func encodeList[From, To any](list []From, convert func(From) To) (driver.Value, error) {
	if len(list) == 0 {
		return "", nil
	}
	converted := make([]To, len(list))
	for i, element := range list {
		converted[i] = convert(element)
	}
	encoded, err := json.Marshal(converted)
	return string(encoded), err
}

func decodeList[From, To any](value any, convert func(From) (To, error)) (list []To, err error) {
	var text []byte
	switch value := value.(type) {
	case string:
		text = []byte(value)
	case []byte:
		text = value
	default:
		return nil, fmt.Errorf("reading tokens: the driver returns a %T", value)
	}
	if len(text) == 0 {
		return nil, nil
	}
	var elements []From
	if err := json.Unmarshal(text, &elements); err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	for _, element := range elements {
		converted, err := convert(element)
		if err != nil {
			return nil, fmt.Errorf("reading tokens: %w", err)
		}
		list = append(list, converted)
	}
	return list, nil
}

func toDigest(bytes []byte) (digest oauth.Digest, err error) {
	if len(bytes) != len(digest) {
		return digest, fmt.Errorf("a digest has %d bytes", len(bytes))
	}
	return oauth.Digest(bytes), nil
}

func toMillis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func fromMillis(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
