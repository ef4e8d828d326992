package application

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// AuthenticateWithHostToken also returns the host token that was pasted for the resource, for the one upstream that gave it out
// (J13, U6). A token that cannot open it is refused without harm to its grant: the next refresh brings one that can.
func (s *Server) AuthenticateWithHostToken(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, oauth.HostToken, error) {
	token, err := accessToken(bearer)
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	grant, caller, err := s.authenticate(ctx, token, resource)
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	host, err := grant.HostTokenInUse(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		err = cmp.Or(s.openedElsewhere(ctx), oauth.UnopeningToken())
	}
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	return caller, host, nil
}

// The site's answer about a host token stands for a while, so that an upstream that answers 401 to everything causes few questions.
const (
	confirmationLife = 10 * time.Second // that it knows the token
	outageLife       = 5 * time.Second  // that it cannot tell
)

// VerifyAfterRefusal asks the site about the host token behind an access token, after an upstream has answered 401 (U8). It returns
// nil when the site knows the host token. It ends the grant and returns InvalidToken when the site does not; any other error means
// that the site cannot tell. Simultaneous calls for one grant share one question, and its answer stands for some seconds.
func (s *Server) VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error {
	token, err := accessToken(bearer)
	if err != nil {
		return err
	}
	grant, _, err := s.admit(ctx, token.Digest(), resource, s.now())
	if err != nil {
		return err
	}
	_, err, _ = s.afterRefusals.Do(grant.ID(), func() (any, error) {
		if err, known := s.verified.recently(grant.ID(), s.now()); known {
			return nil, err
		}
		err := s.recheck(ctx, grant, token)
		s.verified.note(grant.ID(), verification{at: s.now(), err: err})
		return nil, err
	})
	return err
}

// verification is what the site has said about the host token of a grant.
type verification struct {
	at  time.Time
	err error
}

// stands is false for a time in the future, which is left from before the clock was set back.
func (v verification) stands(now time.Time) bool {
	life := confirmationLife
	if v.err != nil {
		life = outageLife
	}
	return !v.at.After(now) && now.Sub(v.at) < life
}

// verifications are the recent ones.
type verifications struct {
	mu      sync.Mutex
	byGrant map[string]verification
}

func (v *verifications) recently(grant string, now time.Time) (err error, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, found := v.byGrant[grant]
	return last.err, found && last.stands(now)
}

func (v *verifications) note(grant string, last verification) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byGrant == nil {
		v.byGrant = map[string]verification{}
	}
	maps.DeleteFunc(v.byGrant, func(_ string, one verification) bool { return !one.stands(last.at) })
	v.byGrant[grant] = last
}
