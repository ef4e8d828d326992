package application

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Results of the verifier are cached, so that an upstream that answers 401 to everything causes few
// calls.
const (
	confirmationLife = 10 * time.Second
	outageLife       = 5 * time.Second
)

// VerifyAfterRefusal verifies the host token of an access token after an upstream has answered 401.
// It returns nil if the host token is valid. If it is invalid, it ends the grant and returns
// InvalidToken. Any other error is an outage of the site. Concurrent calls for one grant share one
// verification, and its result is cached for some seconds.
func (s *Server) VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error {
	if s.isDirect(bearer) {
		return s.recheckDirect(ctx, bearer, resource)
	}
	grant, token, _, err := s.admit(ctx, bearer, resource, s.now())
	if err != nil {
		return err
	}
	return s.confirm(grant.ID(), func() error { return s.recheck(ctx, grant, token) })
}

// confirm checks once for all concurrent calls with an id, and keeps the result for some seconds.
func (s *Server) confirm(id string, check func() error) error {
	id = "after a refusal " + id // a direct token has another answer too
	_, err, _ := s.asking.Do(id, func() (any, error) {
		last, found := s.answers.Get(id)
		if found && (last.isFresh(s.now(), outageLife) || last.err == nil && last.isFresh(s.now(), confirmationLife)) {
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
	ends      uint32 // of grants of the token before the verifier was asked
	principal oauth.Principal
	err       error
}

// isFresh is false for a time in the future: the clock was set back.
func (a answer) isFresh(now time.Time, life time.Duration) bool {
	return !a.at.After(now) && now.Sub(a.at) < life
}
