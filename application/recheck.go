package application

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// recheck verifies the host token of a grant in use, once for all concurrent calls of the grant.
// When the site does not know the token any more, it ends the grant and refuses with InvalidToken.
// Any other error is an outage.
func (s *Server) recheck(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) error {
	_, err, _ := s.rechecks.Do(grant.ID(), func() (any, error) {
		ctx := context.WithoutCancel(ctx)
		err := s.recheckOnce(ctx, grant, token)
		if !errors.Is(err, errReplaced) {
			return nil, err
		}
		newest, err := s.store.Grant(ctx, grant.ID())
		if err != nil {
			return nil, err
		}
		return nil, s.recheckOnce(ctx, newest, token)
	})
	return err
}

func (s *Server) recheckOnce(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) error {
	host, err := grant.UnsealWithAccessToken(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		return s.endByLostKey(ctx, grant, oauth.RefuseUnknownToken())
	}
	if err != nil {
		return err
	}
	start := s.now()
	principal, err := s.reverify(ctx, grant, host, oauth.RefuseUnknownToken())
	if err != nil {
		return err
	}
	return s.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) error {
		g.RecordVerification(principal, s.settings, start)
		return nil
	})
}

// errReplaced means that the host token of a grant was replaced during its verification. The caller
// verifies the new one; if that is replaced too, the client tries again.
var errReplaced = fmt.Errorf("%w: the host token was replaced meanwhile", oauth.ErrUnavailable)

// reverify verifies the host token of a grant outside of any transaction. When the site does not
// know it any more, or the grant has a ReasonToEnd, it ends the grant and returns refusal, or
// errReplaced; after any other error the grant stays.
func (s *Server) reverify(ctx context.Context, grant *oauth.AccessGrant, host oauth.HostToken,
	refusal error) (oauth.Principal, error) {
	principal, err := s.verifyAgain(ctx, grant.Resource(), host, grant.Subject())
	reason, detail := oauth.EndedByHostToken, ""
	switch kind, _ := oauth.KindOf(err); {
	case err == nil:
		if reason = grant.ReasonToEnd(principal, s.settings); reason == "" {
			return principal, nil
		}
		if reason == oauth.EndedByNewPerson {
			detail = fmt.Sprintf("%q before, %q now.", grant.Subject(), principal.Subject)
		}
	case kind != oauth.WrongHostToken:
		return principal, err
	}
	_, err = s.endIf(ctx, grant, reason, detail, func(newest *oauth.AccessGrant) error {
		if print := newest.HostPrint(); print != grant.HostPrint() && newest.EndReason() == "" {
			return errReplaced
		}
		return nil
	})
	return oauth.Principal{}, cmp.Or(err, refusal)
}

// endAndRefuse ends a grant and returns refusal, or the error of the store.
func (s *Server) endAndRefuse(ctx context.Context, grant *oauth.AccessGrant, reason oauth.EndReason,
	refusal error) error {
	if _, err := s.end(ctx, grant, reason); err != nil {
		return err
	}
	return refusal
}

// endByLostKey ends a grant whose host token cannot be unsealed any more and returns refusal. It
// fails while another replica has a newer server secret, which may unseal it, and while none can be
// asked.
func (s *Server) endByLostKey(ctx context.Context, grant *oauth.AccessGrant, refusal error) error {
	if err := s.AgreeOnSecret(ctx); err != nil {
		return fmt.Errorf("ending a grant: %w: %w", oauth.ErrUnavailable, err)
	}
	return s.endAndRefuse(ctx, grant, oauth.EndedByLostKey, refusal)
}

// checkSecretAgreement returns ErrUnavailable while another replica has a newer server secret,
// under which a token may be valid.
func (s *Server) checkSecretAgreement() error {
	if s.outdated.Load() {
		return fmt.Errorf("checking a token: %w: %w", oauth.ErrUnavailable, oauth.ErrOtherSecret)
	}
	return nil
}

// AgreeOnSecret stores the fingerprint of the current server secret for other processes on the
// store and for later ones. It returns oauth.ErrOtherSecret when they have a newer one.
func (s *Server) AgreeOnSecret(ctx context.Context) error {
	if s.ports.Witness == nil {
		return nil
	}
	prints, err := s.settings.Keys.SecretFingerprints()
	if err != nil {
		return err
	}
	err = s.ports.Witness.VerifySecret(ctx, prints)
	if err == nil || errors.Is(err, oauth.ErrOtherSecret) {
		s.outdated.Store(err != nil)
	}
	return err
}
