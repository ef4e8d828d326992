package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// verifyLimit is how long the site may take to say whether it knows a token (B9).
	verifyLimit = 5 * time.Second
	// verifyPlaces bounds the callbacks under way, so that a site that hangs cannot pile up goroutines.
	verifyPlaces = 64
)

// judge asks the site about a host token and survives whatever its callback does.
type judge struct {
	verifier oauth.BearerVerifier
	places   chan struct{}
}

func newJudge(verifier oauth.BearerVerifier) judge {
	return judge{verifier, make(chan struct{}, verifyPlaces)}
}

type verdict struct {
	principal oauth.Principal
	err       error
}

// ask refuses with WrongHostToken what the site does not know, and with HostTokenNotVerifiable when it panics, takes too long
// or cannot tell (B8, B9).
func (j judge) ask(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	select {
	case j.places <- struct{}{}:
	case <-ctx.Done():
		return oauth.Principal{}, notVerifiable(ctx.Err())
	}
	answer := make(chan verdict, 1)
	go func() {
		defer func() { <-j.places }()
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
			v = verdict{err: errors.New("the site's verifier panicked")}
		}
	}()
	principal, err := j.verifier.VerifyBearer(ctx, host.Reveal())
	if err == nil {
		err = principal.Check()
	}
	return verdict{principal, err}
}

func refused(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, oauth.ErrUnknownBearer):
		return oauth.Refuse(oauth.WrongHostToken, "the site does not know this token")
	}
	return notVerifiable(err)
}

// notVerifiable keeps only the type of the site's error for the log, because its text may hold the token (B15): that of an HTTP
// client that timed out is the whole URL.
func notVerifiable(err error) error {
	if err != context.DeadlineExceeded && err != context.Canceled { //nolint:errorlint // a wrapped one has a text of its own
		err = fmt.Errorf("the site's verifier failed with %T", err)
	}
	return oauth.RefuseFor(verifyLimit, oauth.HostTokenNotVerifiable, "the site cannot check tokens just now", err)
}
