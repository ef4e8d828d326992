package application

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// directLife is how long an answer of a verifier about a direct token counts.
const directLife = time.Minute

// directToken is a token of the site that a client has sent to an MCP endpoint.
type directToken struct {
	id       string // of the token at the resource, because each resource may have its own verifier
	host     oauth.HostToken
	prints   []oauth.Fingerprint // under every server secret, the newest first
	resource oauth.Resource
}

// ends counts, for each token, how often grants of it have ended. Tokens may share a counter, so
// that the verifier is asked more often than necessary.
type ends [1 << 16]atomic.Uint32

func (e *ends) counter(print oauth.Fingerprint) *atomic.Uint32 {
	return &e[binary.BigEndian.Uint16(print[:])]
}

func (e *ends) of(token directToken) (all uint32) {
	for _, print := range token.prints {
		all += e.counter(print).Load()
	}
	return all
}

// ForgetDirectTokens makes the next request with one of these tokens of the site ask its verifier,
// because grants of the token have ended.
func (s Operator) ForgetDirectTokens(ended []oauth.Fingerprint) {
	for _, print := range ended {
		s.ends.counter(print).Add(1)
	}
}

// isDirect reports whether a bearer token is taken for one of the site's own.
func (s *core) isDirect(bearer string) bool {
	return s.Settings.AcceptHostTokens && !oauth.IsOwnToken(bearer)
}

// authenticateDirect is Authenticate for a token of the site, which it verifies at most once in
// directLife.
func (s *core) authenticateDirect(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller,
	oauth.HostToken, error) {
	token, err := s.newDirectToken(bearer, resource)
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	principal, err, counts := s.directAnswer(token)
	if !counts {
		principal, err = s.askOnce(ctx, token)
	}
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	caller, err := s.Settings.DirectCaller(token.prints[0], principal, resource)
	return caller, token.host, err
}

func (s *core) newDirectToken(bearer string, resource oauth.Resource) (token directToken, err error) {
	if token.host, err = parseHost(s.Settings.HostFields, map[string]string{credential.Token: bearer}); err != nil {
		return token, oauth.RefuseDirectToken()
	}
	if token.prints, err = s.Settings.Fingerprints(token.host); err != nil {
		return token, err
	}
	token.id, token.resource = string(token.prints[0][:])+" at "+resource.String(), resource
	return token, nil
}

// directAnswer returns the kept answer about a token, if that still counts. That the token is valid
// counts only until one of its grants ends.
func (s *core) directAnswer(token directToken) (principal oauth.Principal, err error, counts bool) {
	last, found := s.answers.Get(token.id)
	if !found || !last.isFresh(s.now(), directLife) || last.err == nil && last.ends != s.ends.of(token) {
		return oauth.Principal{}, nil, false
	}
	return last.principal, last.err, true
}

// askOnce asks the verifier once for all concurrent requests with a token. The end of the first
// request does not cancel it.
func (s *core) askOnce(ctx context.Context, token directToken) (oauth.Principal, error) {
	got, err, _ := s.asking.Do(token.id, func() (any, error) {
		if principal, err, counts := s.directAnswer(token); counts {
			return principal, err
		}
		guess := quota.Guess{By: quota.RequesterFrom(ctx), AtOnce: true}
		return s.ask(token, func() (oauth.Principal, error) {
			return s.check(context.WithoutCancel(ctx), guess, token.resource, token.host)
		})
	})
	principal, _ := got.(oauth.Principal)
	return principal, err
}

// ask calls verify and keeps its answer, but not an outage. If grants of the token end meanwhile,
// the answer that it is valid may be outdated, so ask calls verify once more.
func (s *core) ask(token directToken, verify func() (oauth.Principal, error)) (oauth.Principal, error) {
	for range 2 {
		before := s.ends.of(token)
		principal, err := verify()
		if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
			err = oauth.RefuseDirectToken()
		}
		if err == nil && s.ends.of(token) != before {
			continue
		}
		if kind, _ := oauth.KindOf(err); err == nil || kind == oauth.InvalidToken {
			s.answers.Add(token.id, answer{s.now(), before, principal, err})
		}
		return principal, err
	}
	return oauth.Principal{}, fmt.Errorf("%w: grants of a token ended while it was verified", oauth.ErrUnavailable)
}
