package application

import (
	"cmp"
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// readSecret parses a secret of the form. It refuses with InvalidRequest when it is missing, and as
// unknown when it has another format.
func (s *Server) readSecret(ctx context.Context, p oauth.Parameters, name string,
	kind oauth.SecretKind) (oauth.Secret, error) {
	text := p.Get(name)
	if text == "" {
		return oauth.Secret{}, oauth.Refuse(oauth.InvalidRequest, "D12, D22", "the "+name+" is missing")
	}
	secret, err := s.parseSecret(kind, text)
	return secret, s.limitUnknown(ctx, err)
}

// parseSecret returns ErrNotFound for a text that this server did not issue,
// without a look into the store.
func (s *Server) parseSecret(kind oauth.SecretKind, text string) (oauth.Secret, error) {
	secret, err := oauth.ParseSecret(kind, text, s.settings.Keys)
	if errors.Is(err, oauth.ErrForeignSecret) {
		err = cmp.Or(s.checkSecretAgreement(), err)
	}
	return secret, err
}

// codeOf looks up a code. No limit applies to a known code, even if the request is then refused.
func (s *Server) codeOf(ctx context.Context, presented oauth.Secret) (*oauth.AuthorizationCode, error) {
	code, err := s.store.Code(ctx, presented.Grant())
	return code, s.limitUnknown(ctx, err)
}

// grantOf looks up the grant of a refresh token. No limit applies to a known token, even if the
// request is then refused.
func (s *Server) grantOf(ctx context.Context, presented oauth.Secret) (*oauth.AccessGrant, error) {
	grant, err := s.store.Grant(ctx, presented.Grant())
	if err != nil {
		return nil, s.limitUnknown(ctx, err)
	}
	grant.RecordUse(s.uses.of(grant.ID()))
	return grant, nil
}

// limitUnknown counts an unknown code or refresh token for the requester, and refuses with
// TooManyFailures when there are too many. It runs after the lookup, so that a known secret is
// never refused for its address.
func (s *Server) limitUnknown(ctx context.Context, err error) error {
	if !errors.Is(err, oauth.ErrNotFound) {
		return err
	}
	wait := s.ports.Rates.Take(s.now(), oauth.RequesterFrom(ctx).UnknownToken()...)
	if wait == 0 {
		return oauth.RefuseUnknownGrant()
	}
	s.ports.Limited.Observe(oauth.LimitUnknownTokens, oauth.LimitRefused)
	return oauth.RefuseFor(wait, oauth.TooManyFailures, "D31",
		"Too many unknown codes and refresh tokens came from this network")
}

// unknownGrant turns ErrNotFound, of a row that was deleted after the lookup, into the refusal of
// an unknown secret.
func unknownGrant(err error) error {
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.RefuseUnknownGrant()
	}
	return err
}
