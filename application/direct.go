package application

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// directLife is how long an answer of a verifier about a direct token counts.
	directLife = time.Minute
	// maxDirect bounds the tokens that have an answer, and those that have ended.
	maxDirect = 10_000
)

// directToken is a token of the site that a client has sent to an MCP endpoint.
type directToken struct {
	id       string // of the token at the resource: each server has its own verifier
	host     oauth.HostToken
	prints   []oauth.Fingerprint // under every server secret, the newest first
	resource oauth.Resource
}

// directAnswer is what a verifier has answered.
type directAnswer struct {
	at        time.Time
	ends      int // directTokens.endsOf when the verifier was asked
	principal oauth.Principal
	refusal   error
}

// directTokens remembers answers about direct tokens.
type directTokens struct {
	asking singleflight.Group

	mu      sync.Mutex
	answers *lru.Cache[string, directAnswer]
	ends    *lru.Cache[oauth.Fingerprint, int] // how often grants of a token have ended
}

func newDirectTokens() *directTokens {
	return &directTokens{
		answers: newCache[string, directAnswer](maxDirect),
		ends:    newCache[oauth.Fingerprint, int](maxDirect),
	}
}

// lookup returns an answer that still counts; ok is false when there is none.
func (d *directTokens) lookup(token directToken, now time.Time) (principal oauth.Principal, err error, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, found := d.answers.Get(token.id)
	if !found || !last.isFresh(now) || last.refusal == nil && last.ends != d.endsOf(token) {
		return oauth.Principal{}, nil, false
	}
	return last.principal, last.refusal, true
}

// isFresh is false for a time in the future: the clock was set back.
func (a directAnswer) isFresh(now time.Time) bool {
	return !a.at.After(now) && now.Sub(a.at) < directLife
}

// endsOf expects the lock.
func (d *directTokens) endsOf(token directToken) (all int) {
	for _, print := range token.prints {
		ends, _ := d.ends.Get(print)
		all += ends
	}
	return all
}

// ask keeps the answer of a verifier. An outage is none. If the token has ended meanwhile, the
// answer may be older than the end: it asks a second time, and never a third.
func (d *directTokens) ask(token directToken, now func() time.Time,
	verify func() (oauth.Principal, error)) (oauth.Principal, error) {
	for range 2 {
		d.mu.Lock()
		before := d.endsOf(token)
		d.mu.Unlock()
		principal, err := verify()
		if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
			err = oauth.RefuseDirectToken()
		}
		if d.add(token, principal, err, now(), before) {
			return principal, err
		}
	}
	return oauth.Principal{}, fmt.Errorf("%w: grants of a token ended while it was verified", oauth.ErrUnavailable)
}

// add returns false for a good answer if the token has ended since the question.
func (d *directTokens) add(token directToken, principal oauth.Principal, err error, now time.Time, before int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.endsOf(token) != before {
		return false
	}
	if kind, _ := oauth.KindOf(err); err == nil || kind == oauth.InvalidToken {
		d.answers.Add(token.id, directAnswer{now, before, principal, err})
	}
	return true
}

// ForgetDirectTokens makes the next request with one of these tokens of the site ask its verifier,
// because grants of the token have ended.
func (s *Server) ForgetDirectTokens(ended []oauth.Fingerprint) {
	s.directs.mu.Lock()
	defer s.directs.mu.Unlock()
	for _, print := range ended {
		ends, _ := s.directs.ends.Get(print)
		s.directs.ends.Add(print, ends+1)
	}
}

// isDirect reports whether a bearer token is taken for one of the site's own.
func (s *Server) isDirect(bearer string) bool {
	return s.settings.AcceptHostTokens && !oauth.IsOwnToken(bearer)
}

// authenticateDirect returns the caller with a token of the site. It verifies the token within the
// limits on pasted tokens, at most once in directLife, and refuses with InvalidToken or
// TooManyGuesses. Any other error is an outage.
func (s *Server) authenticateDirect(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller,
	oauth.HostToken, error) {
	token, err := s.newDirectToken(bearer, resource)
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	principal, err, known := s.directs.lookup(token, s.now())
	if !known {
		principal, err = s.askOnce(ctx, token)
	}
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	caller, err := s.settings.DirectCaller(token.prints[0], principal, resource)
	return caller, token.host, err
}

func (s *Server) newDirectToken(bearer string, resource oauth.Resource) (token directToken, err error) {
	if token.host, err = parseHost(s.settings.HostFields, map[string]string{credential.Token: bearer}); err != nil {
		return token, oauth.RefuseDirectToken()
	}
	if token.prints, err = s.settings.Fingerprints(token.host); err != nil {
		return token, err
	}
	token.id, token.resource = string(token.prints[0][:])+" at "+resource.String(), resource
	return token, nil
}

// askOnce asks the verifier once for all concurrent requests with a token, also if the first of
// them ends.
func (s *Server) askOnce(ctx context.Context, token directToken) (oauth.Principal, error) {
	answer, err, _ := s.directs.asking.Do(token.id, func() (any, error) {
		if principal, err, known := s.directs.lookup(token, s.now()); known {
			return principal, err
		}
		guess := oauth.Guess{By: oauth.RequesterFrom(ctx), AtOnce: true}
		return s.directs.ask(token, s.now, func() (oauth.Principal, error) {
			return s.check(context.WithoutCancel(ctx), guess, token.resource, token.host)
		})
	})
	principal, _ := answer.(oauth.Principal)
	return principal, err
}

// recheckDirect is VerifyAfterRefusal for a token of the site.
func (s *Server) recheckDirect(ctx context.Context, bearer string, resource oauth.Resource) error {
	token, err := s.newDirectToken(bearer, resource)
	if err != nil {
		return err
	}
	return s.confirm(token.id, func() error {
		_, err := s.directs.ask(token, s.now, func() (oauth.Principal, error) {
			return s.verifyAgain(context.WithoutCancel(ctx), resource, token.host, "")
		})
		return err
	})
}

// endDirect ends what callers with a token of the site have open, and makes its next request ask
// the verifier.
func (s *Server) endDirect(prints []oauth.Fingerprint) {
	if !s.settings.AcceptHostTokens {
		return
	}
	s.ForgetDirectTokens(prints)
	for _, print := range prints {
		s.onGrantEnded(oauth.DirectID(print))
	}
}
