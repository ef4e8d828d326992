package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// presented reads a secret from the form: absent is InvalidRequest, anything but our format is unknown (D12, D22).
func (s *Server) presented(ctx context.Context, p oauth.Parameters, name string, kind oauth.SecretKind) (oauth.Secret, error) {
	text := p.Get(name)
	if text == "" {
		return oauth.Secret{}, oauth.Refuse(oauth.InvalidRequest, "D12, D22", "the "+name+" is missing")
	}
	secret, ok := oauth.ParseSecret(kind, text)
	if !ok {
		return oauth.Secret{}, s.refuseUnknown(ctx)
	}
	return secret, nil
}

// grantOf looks up the grant of a code or refresh token. No limit applies to one that is found, whatever becomes of the request.
func (s *Server) grantOf(ctx context.Context, presented oauth.Secret) (*oauth.AccessGrant, error) {
	grant, err := s.ports.Store.Grant(ctx, presented.Digest())
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, s.refuseUnknown(ctx)
	}
	return grant, err
}

// refuseUnknown counts an unknown code or refresh token for the requester, and tells a requester with too many of them to wait (D31).
// The lookup has come first, so the answer tells nothing about secrets that are known.
func (s *Server) refuseUnknown(ctx context.Context) error {
	requester := oauth.RequesterFrom(ctx)
	if !requester.Limited() {
		return oauth.UnknownGrant()
	}
	wait := s.ports.Failures.Failed(requester.Address(), s.now())
	if wait == 0 {
		return oauth.UnknownGrant()
	}
	s.ports.Limited.Observe(oauth.LimitUnknownTokens, oauth.LimitRefused)
	return oauth.RefuseFor(wait, oauth.TooManyFailures, "D31", "Too many unknown codes and refresh tokens came from this network")
}

// unknownGrant answers for a secret whose grant was forgotten after the lookup like for an unknown one (D32); an outage stays one.
func unknownGrant(err error) error {
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.UnknownGrant()
	}
	return err
}
