package application

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// recheck verifies the host token of a grant in use, once for all concurrent calls of the grant.
// When the site does not know the token any more, it ends the grant and refuses with InvalidToken.
func (s *core) recheck(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) error {
	_, err, _ := s.rechecks.Do(grant.ID(), func() (any, error) {
		ctx, start := context.WithoutCancel(ctx), s.now()
		unseal := func(g *oauth.AccessGrant) (*oauth.UnsealedHostToken, error) {
			host, err := g.UnsealWithAccessToken(token, s.Settings)
			return &oauth.UnsealedHostToken{HostToken: host}, err
		}
		_, principal, err := s.reverify(ctx, grant, unseal, oauth.RefuseUnknownToken())
		if err != nil {
			return nil, err
		}
		return nil, s.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) error {
			g.RecordVerification(principal, s.Settings, start)
			return nil
		})
	})
	return err
}

// errReplaced means that the host token of a grant was replaced during its verification. The new
// one is then verified; if that is replaced too, the client tries again.
var errReplaced = fmt.Errorf("%w: the host token was replaced meanwhile", oauth.ErrUnavailable)

// reverify unseals and verifies the host token of a grant outside of any transaction. If the site
// does not know the token, no key unseals it, or the grant has a ReasonToEnd, reverify ends the
// grant and returns refusal. After another error the grant stays. The caller calls Forget on host.
func (s *core) reverify(ctx context.Context, grant *oauth.AccessGrant,
	unseal func(*oauth.AccessGrant) (*oauth.UnsealedHostToken, error), refusal error) (
	host *oauth.UnsealedHostToken, principal oauth.Principal, err error) {
	for range 2 {
		if host, err = unseal(grant); errors.Is(err, oauth.ErrHostTokenLost) {
			err = s.endByLostKey(ctx, grant, refusal)
		}
		if err != nil {
			return nil, principal, err
		}
		principal, err = s.verifyAgain(ctx, grant.Resource(), host.HostToken, grant.Subject())
		reason, detail := oauth.EndedByHostToken, ""
		switch kind, _ := oauth.KindOf(err); {
		case err == nil:
			if reason = grant.ReasonToEnd(principal, s.Settings); reason == "" {
				return host, principal, nil
			}
			if reason == oauth.EndedByNewPerson {
				detail = fmt.Sprintf("%q before, %q now.", grant.Subject(), principal.Subject)
			}
		case kind != oauth.WrongHostToken: // such as an outage
			host.Forget()
			return nil, principal, err
		}
		host.Forget()
		if err = s.endUnlessReplaced(ctx, grant, reason, detail); !errors.Is(err, errReplaced) {
			return nil, principal, cmp.Or(err, refusal)
		}
		newest, findErr := s.store.Grant(ctx, grant.ID())
		if findErr != nil {
			return nil, principal, insteadOfNotFound(findErr, refusal)
		}
		grant = newest
	}
	return nil, principal, err
}

// endUnlessReplaced ends a grant, or returns errReplaced when it has another host token by now.
func (s *core) endUnlessReplaced(ctx context.Context, grant *oauth.AccessGrant, reason oauth.EndReason,
	detail string) error {
	ended, now := false, s.now()
	err := s.store.UpdateGrant(ctx, grant, func(newest *oauth.AccessGrant) error {
		if print := newest.HostPrint(); print != grant.HostPrint() && newest.EndReason() == "" {
			return errReplaced
		}
		ended = newest.End(reason, now)
		return nil
	})
	if err == nil && ended {
		s.announceEnd(ctx, grant.ID(), reason, detail)
	}
	return err
}

// endByLostKey ends a grant whose host token cannot be unsealed any more, unless another replica
// may have a newer server secret that can, and returns refusal.
func (s *core) endByLostKey(ctx context.Context, grant *oauth.AccessGrant, refusal error) error {
	if err := s.AgreeOnSecret(ctx); err != nil {
		return fmt.Errorf("ending a grant: %w: %w", oauth.ErrUnavailable, err)
	}
	_, err := s.endAuthorization(ctx, grant.ID(), oauth.EndedByLostKey)
	return cmp.Or(err, refusal)
}

// VerifyAfterRefusal keeps its results, so that an upstream that answers 401 to everything causes
// few calls of the verifier.
const (
	confirmedFor = 10 * time.Second // a valid token
	failedFor    = 5 * time.Second  // any error
)

// VerifyAfterRefusal verifies the host token of an access token after an upstream has answered 401.
// If it is invalid, it ends the grant and returns InvalidToken. Any other error is an outage of the
// site. Concurrent calls for one grant share one verification.
func (s Tokens) VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error {
	if s.isDirect(bearer) {
		direct, err := s.newDirectToken(bearer, resource)
		if err != nil {
			return err
		}
		return s.confirm(direct.id, func() error {
			_, err := s.ask(direct, func() (oauth.Principal, error) {
				return s.verifyAgain(context.WithoutCancel(ctx), resource, direct.host, "")
			})
			return err
		})
	}
	grant, token, _, err := s.admit(ctx, bearer, resource, s.now())
	if err != nil {
		return err
	}
	return s.confirm(grant.ID(), func() error { return s.recheck(ctx, grant, token) })
}

// confirm checks once for all concurrent calls with an id, and keeps the result for some seconds.
func (s *core) confirm(id string, check func() error) error {
	id = "after a refusal " + id // directAnswer has its own answer under the id of a direct token
	_, err, _ := s.asking.Do(id, func() (any, error) {
		last, found := s.answers.Get(id)
		if found && (last.isFresh(s.now(), failedFor) || last.err == nil && last.isFresh(s.now(), confirmedFor)) {
			return nil, last.err
		}
		err := check()
		s.answers.Add(id, answer{at: s.now(), err: err})
		return nil, err
	})
	return err
}

// answer is what a verifier has answered about a token of the site.
type answer struct {
	at        time.Time
	ends      uint32 // ends.of the token before the verifier was asked
	principal oauth.Principal
	err       error
}

// isFresh reports whether the answer is younger than life. It is false if the clock was set back.
func (a answer) isFresh(now time.Time, life time.Duration) bool {
	return !a.at.After(now) && now.Sub(a.at) < life
}

// checkSecretAgreement returns ErrUnavailable while another replica has a newer server secret,
// under which a token may be valid.
func (s *core) checkSecretAgreement() error {
	if s.outdated.Load() {
		return fmt.Errorf("checking a token: %w: %w", oauth.ErrUnavailable, oauth.ErrOtherSecret)
	}
	return nil
}

// AgreeOnSecret stores the fingerprint of the current server secret for other processes on the
// store and for later ones. It returns oauth.ErrOtherSecret when they have a newer one.
func (s *core) AgreeOnSecret(ctx context.Context) error {
	if s.ports.Witness == nil {
		return nil
	}
	prints, err := s.Settings.Keys.SecretFingerprints()
	if err != nil {
		return err
	}
	err = s.ports.Witness.VerifySecret(ctx, prints)
	if err == nil || errors.Is(err, oauth.ErrOtherSecret) {
		s.outdated.Store(err != nil)
	}
	return err
}
