package fositesite

import (
	"context"
	"time"

	"github.com/ory/fosite"
)

// table holds the sessions of one kind.
type table string

const (
	codes     table = "codes"
	pkces     table = "pkces"
	accesses  table = "access_tokens"
	refreshes table = "refresh_tokens"
)

// These methods implement fosite's storage interfaces.

func (s *store) GetClient(_ context.Context, id string) (fosite.Client, error) {
	if id != s.client.GetID() {
		return nil, fosite.ErrNotFound
	}
	return s.client, nil
}

func (s *store) ClientAssertionJWTValid(context.Context, string) error { return nil }

func (s *store) SetClientAssertionJWT(context.Context, string, time.Time) error { return nil }

func (s *store) CreateAuthorizeCodeSession(ctx context.Context, code string, r fosite.Requester) error {
	return s.add(ctx, codes, code, r)
}

func (s *store) GetAuthorizeCodeSession(ctx context.Context, code string, _ fosite.Session) (fosite.Requester, error) {
	r, active, err := s.get(ctx, codes, code)
	if err == nil && !active {
		err = fosite.ErrInvalidatedAuthorizeCode
	}
	return r, err
}

func (s *store) InvalidateAuthorizeCodeSession(ctx context.Context, code string) error {
	return s.deactivate(ctx, codes, "signature", code)
}

func (s *store) CreatePKCERequestSession(ctx context.Context, signature string, r fosite.Requester) error {
	return s.add(ctx, pkces, signature, r)
}

func (s *store) GetPKCERequestSession(ctx context.Context, signature string,
	_ fosite.Session) (fosite.Requester, error) {
	r, _, err := s.get(ctx, pkces, signature)
	return r, err
}

func (s *store) DeletePKCERequestSession(ctx context.Context, signature string) error {
	return s.remove(ctx, pkces, "signature", signature)
}

func (s *store) CreateAccessTokenSession(ctx context.Context, signature string, r fosite.Requester) error {
	return s.add(ctx, accesses, signature, r)
}

func (s *store) GetAccessTokenSession(ctx context.Context, signature string,
	_ fosite.Session) (fosite.Requester, error) {
	r, _, err := s.get(ctx, accesses, signature)
	return r, err
}

func (s *store) DeleteAccessTokenSession(ctx context.Context, signature string) error {
	return s.remove(ctx, accesses, "signature", signature)
}

func (s *store) CreateRefreshTokenSession(ctx context.Context, signature, _ string, r fosite.Requester) error {
	return s.add(ctx, refreshes, signature, r)
}

func (s *store) GetRefreshTokenSession(ctx context.Context, signature string,
	_ fosite.Session) (fosite.Requester, error) {
	r, active, err := s.get(ctx, refreshes, signature)
	if err == nil && !active {
		err = fosite.ErrInactiveToken
	}
	return r, err
}

func (s *store) DeleteRefreshTokenSession(ctx context.Context, signature string) error {
	return s.remove(ctx, refreshes, "signature", signature)
}

// RotateRefreshToken spends a refresh token and ends the access tokens of its request.
func (s *store) RotateRefreshToken(ctx context.Context, request, signature string) error {
	if err := s.deactivate(ctx, refreshes, "signature", signature); err != nil {
		return err
	}
	return s.RevokeAccessToken(ctx, request)
}

func (s *store) RevokeRefreshToken(ctx context.Context, request string) error {
	return s.deactivate(ctx, refreshes, "request", request)
}

func (s *store) RevokeAccessToken(ctx context.Context, request string) error {
	return s.remove(ctx, accesses, "request", request)
}
