package application

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// readSecret begins a token request: it records the step, admits the client, and parses the secret
// of the form.
func (s *core) readSecret(ctx context.Context, step attempt.Kind, by client.Credentials, p oauth.Parameters,
	name string, kind oauth.SecretKind) (oauth.Secret, error) {
	attempt.From(ctx).Record(step)
	label, err := s.admitClient(by)
	attempt.From(ctx).Identify("", label)
	if err != nil {
		return oauth.Secret{}, err
	}
	text := p.Get(name)
	if text == "" {
		return oauth.Secret{}, oauth.Refuse(oauth.InvalidRequest, "D12, D22", "the "+name+" is missing")
	}
	secret, err := s.parseSecret(kind, text)
	return secret, s.limitUnknown(ctx, err)
}

// parseSecret returns ErrNotFound for a text that this server did not issue. It reads no store.
func (s *core) parseSecret(kind oauth.SecretKind, text string) (oauth.Secret, error) {
	secret, err := oauth.ParseSecret(kind, text, s.Settings.Keys)
	if errors.Is(err, oauth.ErrForeignSecret) {
		err = cmp.Or(s.checkSecretAgreement(), err)
	}
	return secret, err
}

// limitUnknown returns err unless it is ErrNotFound. For ErrNotFound it counts an unknown code or
// refresh token for the requester, and refuses it, after too many with TooManyFailures.
func (s *core) limitUnknown(ctx context.Context, err error) error {
	if !errors.Is(err, oauth.ErrNotFound) {
		return err
	}
	if wait := s.countUnknown(ctx); wait > 0 {
		return oauth.RefuseFor(wait, oauth.TooManyFailures, "D31",
			"Too many unknown codes and refresh tokens came from this network")
	}
	return oauth.RefuseUnknownGrant()
}

// countUnknown counts an unknown secret for the requester, and returns the wait after too many.
func (s *core) countUnknown(ctx context.Context) time.Duration {
	wait := s.ports.Rates.Take(s.now(), quota.RequesterFrom(ctx).UnknownToken()...)
	if wait > 0 {
		s.ports.Limited.Observe(quota.UnknownTokens, quota.Refused)
	}
	return wait
}
