package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/fairqueue"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// verifyLimit is how long the site may take to say whether it knows a token (B9).
	verifyLimit = 5 * time.Second
	// verifyPlaces bounds the callbacks under way for tokens of grants, so that a site that hangs cannot pile up goroutines. Those for
	// pasted tokens have places of their own, so that strangers keep no refresh waiting.
	verifyPlaces = 64
	// placesPerToken bounds the checks of one pasted token at once.
	placesPerToken = 4
	// turnLimit bounds how long a pasted token waits for its check.
	turnLimit = 10 * time.Second
	// How many pasted tokens may wait, for each place in all and for each place of one address.
	waitingPerPlace           = 16
	waitingPerPlaceAndAddress = 8
)

// judge asks the site about a host token and survives whatever its callback does. Each verifier has one of its own, so that one
// that hangs takes no place of another.
type judge struct {
	verifier oauth.BearerVerifier
	granted  chan struct{}    // places for tokens of grants
	pasted   chan struct{}    // places for pasted tokens
	queue    *fairqueue.Queue // of pasted tokens
}

func newJudge(verifier oauth.BearerVerifier, limits oauth.Limits) judge {
	queue := fairqueue.New(fairqueue.Limits{
		Places: limits.MaxVerifications, Waiting: waitingPerPlace * limits.MaxVerifications,
		WaitingPerAddress: waitingPerPlaceAndAddress * limits.MaxVerificationsPerAddress,
	})
	return judge{verifier, make(chan struct{}, verifyPlaces), make(chan struct{}, limits.MaxVerifications), queue}
}

// judgeOf returns who decides about the host tokens that are pasted for the resource (U3).
func (s *Server) judgeOf(resource oauth.Resource) judge {
	if own, has := s.judges[resource]; has {
		return own
	}
	return s.judge
}

// enter waits for one of the places for checks of pasted tokens, for which networks take turns, and the tokens of an address (B20). It
// refuses with TooManyGuesses, for a second, when too many tokens wait.
func (s *Server) enter(ctx context.Context, resource oauth.Resource, a *attempt) (*fairqueue.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	token := string(a.Token[:])
	claim := fairqueue.Claim{Networks: a.By.Networks(), User: token, Shares: []fairqueue.Share{{Key: token, Max: placesPerToken}}}
	if a.By.Limited() {
		claim.Shares = append(claim.Shares, fairqueue.Share{Key: a.By.Address(), Max: s.settings.Limits.MaxVerificationsPerAddress})
	}
	place, err := s.judgeOf(resource).queue.Enter(ctx, claim)
	switch {
	case err != nil:
		s.ports.Limited.Observe(oauth.LimitVerifications, oauth.LimitRefused)
		return nil, oauth.RefuseFor(queueFullWait, oauth.TooManyGuesses, "B20", "too many tokens are being checked", err)
	case place.Waited:
		s.ports.Limited.Observe(oauth.LimitVerifications, oauth.LimitSlowed)
	}
	return place, nil
}

type verdict struct {
	principal oauth.Principal
	err       error
}

// ask checks the token of a grant. It refuses with WrongHostToken what the site does not know, and with HostTokenNotVerifiable when the
// verifier panics, takes too long or cannot decide (B8, B9).
func (j judge) ask(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	return j.askWithin(ctx, j.granted, host)
}

// askPasted is ask for a pasted token.
func (j judge) askPasted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	return j.askWithin(ctx, j.pasted, host)
}

func (j judge) askWithin(ctx context.Context, places chan struct{}, host oauth.HostToken) (oauth.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return oauth.Principal{}, notVerifiable(ctx.Err())
	}
	answer := make(chan verdict, 1)
	go func() {
		defer func() { <-places }()
		answer <- j.call(ctx, host)
	}()
	select {
	case v := <-answer:
		return v.principal, refused(v.err)
	case <-ctx.Done():
		return oauth.Principal{}, notVerifiable(ctx.Err())
	}
}

// call turns a panic into an error; its value is dropped because it may hold the token (B15).
func (j judge) call(ctx context.Context, host oauth.HostToken) (v verdict) {
	defer func() {
		if recover() != nil {
			v = verdict{err: oauth.CannotTell("the site's verifier panicked")}
		}
	}()
	principal, err := j.verifier.VerifyBearer(ctx, host.Reveal())
	if err != nil {
		return verdict{err: err}
	}
	if err := principal.Check(); err != nil {
		return verdict{err: oauth.CannotTell("the site's verifier named a person who cannot be: " + err.Error())}
	}
	if principal.Reveals(host) {
		return verdict{err: oauth.CannotTell("the site's verifier named the token itself as subject or role, which would be stored in clear")}
	}
	return verdict{principal, nil}
}

func refused(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, oauth.ErrUnknownBearer):
		return oauth.Refuse(oauth.WrongHostToken, "B8", "the site does not know this token")
	}
	return notVerifiable(err)
}

func notVerifiable(err error) error {
	return oauth.RefuseFor(verifyLimit, oauth.HostTokenNotVerifiable, "B9", "the site cannot check tokens just now", loggable(err))
}

// loggable keeps only the type of an error that is none of ours, because its text may hold the token (B15): that of an HTTP client
// that timed out is the whole URL.
func loggable(err error) error {
	var said oauth.CannotTell
	switch {
	case errors.As(err, &said): // without the text of what wraps it
		return said
	case err == context.DeadlineExceeded, err == context.Canceled: //nolint:errorlint // a wrapped one has a text of its own
		return err
	}
	return fmt.Errorf("the site's verifier failed with %T", err)
}
