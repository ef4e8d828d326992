package main

import (
	"context"
	"time"

	"github.com/ory/fosite"
)

// Kinds of sessions.
const (
	codeKind    = "code"
	pkceKind    = "pkce"
	accessKind  = "access"
	refreshKind = "refresh"
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
	return s.add(ctx, codeKind, code, r)
}

func (s *store) GetAuthorizeCodeSession(ctx context.Context, code string, _ fosite.Session) (fosite.Requester, error) {
	r, active, err := s.get(ctx, codeKind, code)
	if err == nil && !active {
		err = fosite.ErrInvalidatedAuthorizeCode
	}
	return r, err
}

func (s *store) InvalidateAuthorizeCodeSession(ctx context.Context, code string) error {
	return s.exec(ctx, "UPDATE sessions SET active = 0 WHERE kind = ? AND signature = ?", codeKind, code)
}

func (s *store) CreatePKCERequestSession(ctx context.Context, signature string, r fosite.Requester) error {
	return s.add(ctx, pkceKind, signature, r)
}

func (s *store) GetPKCERequestSession(ctx context.Context, signature string,
	_ fosite.Session) (fosite.Requester, error) {
	r, _, err := s.get(ctx, pkceKind, signature)
	return r, err
}

func (s *store) DeletePKCERequestSession(ctx context.Context, signature string) error {
	return s.remove(ctx, pkceKind, signature)
}

func (s *store) CreateAccessTokenSession(ctx context.Context, signature string, r fosite.Requester) error {
	return s.add(ctx, accessKind, signature, r)
}

func (s *store) GetAccessTokenSession(ctx context.Context, signature string,
	_ fosite.Session) (fosite.Requester, error) {
	r, _, err := s.get(ctx, accessKind, signature)
	return r, err
}

func (s *store) DeleteAccessTokenSession(ctx context.Context, signature string) error {
	return s.remove(ctx, accessKind, signature)
}

func (s *store) CreateRefreshTokenSession(ctx context.Context, signature, _ string, r fosite.Requester) error {
	return s.add(ctx, refreshKind, signature, r)
}

func (s *store) GetRefreshTokenSession(ctx context.Context, signature string,
	_ fosite.Session) (fosite.Requester, error) {
	r, active, err := s.get(ctx, refreshKind, signature)
	if err == nil && !active {
		err = fosite.ErrInactiveToken
	}
	return r, err
}

func (s *store) DeleteRefreshTokenSession(ctx context.Context, signature string) error {
	return s.remove(ctx, refreshKind, signature)
}

// RotateRefreshToken spends a refresh token and ends the access tokens of its request.
func (s *store) RotateRefreshToken(ctx context.Context, request, signature string) error {
	if err := s.exec(ctx, "UPDATE sessions SET active = 0 WHERE kind = ? AND signature = ?", refreshKind,
		signature); err != nil {
		return err
	}
	return s.RevokeAccessToken(ctx, request)
}

func (s *store) RevokeRefreshToken(ctx context.Context, request string) error {
	return s.exec(ctx, "UPDATE sessions SET active = 0 WHERE request = ? AND kind = ?", request, refreshKind)
}

func (s *store) RevokeAccessToken(ctx context.Context, request string) error {
	return s.exec(ctx, "DELETE FROM sessions WHERE request = ? AND kind = ?", request, accessKind)
}
