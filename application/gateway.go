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

// confirmationLife is how long a host token that the site has just confirmed is not checked again, so that an upstream that answers
// 401 to everything causes few questions.
const confirmationLife = 10 * time.Second

// VerifyAfterRefusal asks the site about the host token behind an access token, after an upstream has answered 401 (U8). It returns
// nil when the site knows the host token. It ends the grant and returns InvalidToken when the site does not; any other error means
// that the site cannot tell. Simultaneous calls for one grant share one question, and a confirmation lasts ten seconds.
func (s *Server) VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error {
	token, err := accessToken(bearer)
	if err != nil {
		return err
	}
	grant, _, err := s.admit(ctx, token.Digest(), resource, s.now())
	if err != nil {
		return err
	}
	if s.confirmed.recently(grant.ID(), s.now()) {
		return nil
	}
	if err := s.recheck(ctx, grant, token); err != nil {
		return err
	}
	s.confirmed.note(grant.ID(), s.now())
	return nil
}

// confirmations are the grants whose host token the site has confirmed within confirmationLife.
type confirmations struct {
	mu sync.Mutex
	at map[string]time.Time // by grant
}

func (c *confirmations) recently(grant string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.at[grant]
	return found && fresh(at, now)
}

func (c *confirmations) note(grant string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[string]time.Time{}
	}
	maps.DeleteFunc(c.at, func(_ string, at time.Time) bool { return !fresh(at, now) })
	c.at[grant] = now
}

// fresh is false for a time in the future, which is left from before the clock was set back.
func fresh(at, now time.Time) bool { return !at.After(now) && now.Sub(at) < confirmationLife }
