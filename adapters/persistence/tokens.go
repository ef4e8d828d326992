package persistence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm/schema"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/domain/oauth"
)

// tokensFormat is the first byte of a column with tokens. SCHEMA.md describes the format.
const tokensFormat = 1

// accessTokens is the column with the access tokens of a grant.
type accessTokens []oauth.AccessTokenSnapshot

// rotations is the column with the replaced refresh tokens of a grant.
type rotations []oauth.RotationSnapshot

var _, _ mapper.Encoded = (*accessTokens)(nil), (*rotations)(nil)

// Encode implements mapper.Encoded.
func (a *accessTokens) Encode() []byte {
	if len(*a) == 0 {
		return nil
	}
	encoded := newColumn(len(*a) * 128)
	for _, token := range *a {
		encoded = binary.BigEndian.AppendUint32(encoded, token.Number)
		encoded = append(encoded, token.Digest[:]...)
		encoded = appendTime(encoded, token.ExpiresAt)
		encoded = appendTime(encoded, token.RevokedAt)
		encoded = appendBytes(encoded, []byte(token.Scopes))
		encoded = appendBytes(encoded, token.Wrap)
	}
	return encoded
}

// Scan implements sql.Scanner.
func (a *accessTokens) Scan(value any) error {
	in, err := newTokenReader(value)
	for *a = nil; err == nil && len(in.left) > 0; err = in.err {
		token := oauth.AccessTokenSnapshot{
			Number:    in.uint32(),
			Digest:    in.digest(),
			ExpiresAt: in.time(),
			RevokedAt: in.time(),
		}
		token.Scopes, token.Wrap = string(in.bytes()), in.bytes()
		*a = append(*a, token)
	}
	return err
}

// Equal implements mapper.Encoded.
func (a *accessTokens) Equal(other mapper.Encoded) bool {
	return slices.EqualFunc(*a, *other.(*accessTokens), func(one, other oauth.AccessTokenSnapshot) bool {
		return one.Number == other.Number && one.Digest == other.Digest && one.Scopes == other.Scopes &&
			one.ExpiresAt.Equal(other.ExpiresAt) && one.RevokedAt.Equal(other.RevokedAt) &&
			bytes.Equal(one.Wrap, other.Wrap)
	})
}

// Normalize implements mapper.Encoded.
func (a *accessTokens) Normalize() {
	for i := range *a {
		token := &(*a)[i]
		token.ExpiresAt, token.RevokedAt = mapper.Milliseconds(token.ExpiresAt), mapper.Milliseconds(token.RevokedAt)
	}
}

// Encode implements mapper.Encoded.
func (r *rotations) Encode() []byte {
	if len(*r) == 0 {
		return nil
	}
	encoded := newColumn(len(*r) * 256)
	for _, kept := range *r {
		encoded = binary.BigEndian.AppendUint32(encoded, kept.Number)
		encoded = append(encoded, kept.Digest[:]...)
		encoded = binary.BigEndian.AppendUint32(encoded, kept.Access)
		encoded = appendTime(encoded, kept.ReplacedAt)
		encoded = appendBytes(encoded, kept.Box)
	}
	return encoded
}

// Scan implements sql.Scanner.
func (r *rotations) Scan(value any) error {
	in, err := newTokenReader(value)
	for *r = nil; err == nil && len(in.left) > 0; err = in.err {
		kept := oauth.RotationSnapshot{
			Number:     in.uint32(),
			Digest:     in.digest(),
			Access:     in.uint32(),
			ReplacedAt: in.time(),
		}
		kept.Box = in.bytes()
		*r = append(*r, kept)
	}
	return err
}

// Equal implements mapper.Encoded.
func (r *rotations) Equal(other mapper.Encoded) bool {
	return slices.EqualFunc(*r, *other.(*rotations), func(one, other oauth.RotationSnapshot) bool {
		return one.Number == other.Number && one.Digest == other.Digest && one.Access == other.Access &&
			one.ReplacedAt.Equal(other.ReplacedAt) && bytes.Equal(one.Box, other.Box)
	})
}

// Normalize implements mapper.Encoded.
func (r *rotations) Normalize() {
	for i := range *r {
		(*r)[i].ReplacedAt = mapper.Milliseconds((*r)[i].ReplacedAt)
	}
}

// newColumn has room for entries of this size.
func newColumn(size int) []byte { return append(make([]byte, 0, 1+size), tokensFormat) }

// appendTime appends the milliseconds since 1970, and 0 for the zero time.
func appendTime(encoded []byte, at time.Time) []byte {
	if at.IsZero() {
		return binary.BigEndian.AppendUint64(encoded, 0)
	}
	return binary.BigEndian.AppendUint64(encoded, uint64(at.UnixMilli()))
}

// appendBytes appends the length as a varint and then the bytes.
func appendBytes(encoded, bytes []byte) []byte {
	return append(binary.AppendUvarint(encoded, uint64(len(bytes))), bytes...)
}

var errTokens = errors.New("reading tokens: the column is damaged, or a newer version has written it")

// tokenReader reads a column with tokens. After an error it returns zero values.
type tokenReader struct {
	left []byte
	err  error
}

func newTokenReader(value any) (*tokenReader, error) {
	switch encoded := value.(type) {
	case nil:
		return &tokenReader{}, nil
	case []byte:
		if len(encoded) > 0 && encoded[0] == tokensFormat {
			return &tokenReader{left: encoded[1:]}, nil
		}
	}
	return &tokenReader{}, errTokens
}

func (t *tokenReader) next(size uint64) []byte {
	if size > uint64(len(t.left)) {
		t.left, t.err = nil, errTokens
		return nil
	}
	bytes := t.left[:size:size]
	t.left = t.left[size:]
	return bytes
}

func (t *tokenReader) uint32() uint32 {
	if bytes := t.next(4); bytes != nil {
		return binary.BigEndian.Uint32(bytes)
	}
	return 0
}

func (t *tokenReader) digest() (digest oauth.Digest) {
	copy(digest[:], t.next(uint64(len(digest))))
	return digest
}

func (t *tokenReader) time() time.Time {
	bytes := t.next(8)
	if bytes == nil || binary.BigEndian.Uint64(bytes) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(bytes))).UTC() //nolint:gosec // as written
}

// bytes returns nil for no bytes, and otherwise a copy, because drivers reuse their buffers.
func (t *tokenReader) bytes() []byte {
	size, read := binary.Uvarint(t.left)
	if read <= 0 {
		t.left, t.err = nil, errTokens
		return nil
	}
	t.left = t.left[read:]
	return append([]byte(nil), t.next(size)...)
}

// tokenSerializer lets GORM read and write the columns in the same way.
type tokenSerializer struct{}

func init() { schema.RegisterSerializer("pasteport_tokens", tokenSerializer{}) }

func encodedField(pointer any) mapper.Encoded {
	switch list := pointer.(type) {
	case *[]oauth.AccessTokenSnapshot:
		return (*accessTokens)(list)
	case *[]oauth.RotationSnapshot:
		return (*rotations)(list)
	}
	return nil
}

// Value implements schema.SerializerValuerInterface.
func (tokenSerializer) Value(ctx context.Context, field *schema.Field, row reflect.Value, _ any) (any, error) {
	list := encodedField(field.ReflectValueOf(ctx, row).Addr().Interface())
	if encoded := list.Encode(); encoded != nil {
		return encoded, nil
	}
	return nil, nil
}

// Scan implements schema.SerializerInterface.
func (tokenSerializer) Scan(ctx context.Context, field *schema.Field, row reflect.Value, value any) error {
	if err := encodedField(field.ReflectValueOf(ctx, row).Addr().Interface()).Scan(value); err != nil {
		return fmt.Errorf("reading %s: %w", field.Name, err)
	}
	return nil
}
