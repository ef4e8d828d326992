package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/fairqueue"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// verifyTimeout bounds a call of the verifier (B9).
	verifyTimeout = 5 * time.Second
	// grantedSlots bounds the concurrent calls of the verifier for grants, so that a verifier that hangs cannot pile up goroutines. Pasted tokens
	// have separate slots, so that they cannot delay a refresh.
	grantedSlots = 64
	// slotsPerToken bounds the concurrent verifications of one pasted token.
	slotsPerToken = 4
	// queueTimeout bounds the wait of a pasted token for its verification.
	queueTimeout = 10 * time.Second
	// The number of waiting claims for each slot, in total and of one address.
	waitingPerSlot           = 16
	waitingPerSlotAndAddress = 8
)

// verifierGuard calls a verifier of the site, recovers from its panics and bounds its running time. Each verifier has a separate guard, so that one
// that hangs does not use up the slots of another.
type verifierGuard struct {
	verifier oauth.BearerVerifier
	granted  chan struct{}    // semaphore for tokens of grants
	pasted   chan struct{}    // semaphore for pasted tokens
	queue    *fairqueue.Queue // of pasted tokens
	fields   credential.Fields
}

func newVerifierGuard(verifier oauth.BearerVerifier, fields credential.Fields, limits oauth.Limits) verifierGuard {
	queue := fairqueue.New(fairqueue.Limits{
		Slots: limits.MaxVerifications, MaxWaiting: waitingPerSlot * limits.MaxVerifications,
		MaxWaitingPerAddress: waitingPerSlotAndAddress * limits.MaxVerificationsPerAddress,
	})
	return verifierGuard{verifier, make(chan struct{}, grantedSlots), make(chan struct{}, limits.MaxVerifications), queue, fields}
}

// guardFor returns the guard of the verifier of a resource (U3).
func (s *Server) guardFor(resource oauth.Resource) verifierGuard {
	if own, has := s.ownGuards[resource]; has {
		return own
	}
	return s.guard
}

// acquireSlot waits for one of the slots for pasted tokens, which networks share fairly, and within a network its tokens (B20). It refuses with
// TooManyGuesses, for a second, when the queue is full.
func (s *Server) acquireSlot(ctx context.Context, resource oauth.Resource, a *attempt) (*fairqueue.Slot, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	token := string(a.Token[:])
	claim := fairqueue.Claim{Networks: a.By.Networks(), User: token, Quotas: []fairqueue.Quota{{Key: token, Max: slotsPerToken}}}
	if a.By.Limited() {
		claim.Quotas = append(claim.Quotas, fairqueue.Quota{Key: a.By.Address(), Max: s.settings.Limits.MaxVerificationsPerAddress})
	}
	slot, err := s.guardFor(resource).queue.Acquire(ctx, claim)
	switch {
	case err != nil:
		s.ports.Limited.Observe(oauth.LimitVerifications, oauth.LimitRefused)
		return nil, oauth.RefuseFor(queueFullWait, oauth.TooManyGuesses, "B20", "too many tokens are being checked", err)
	case slot.Waited:
		s.ports.Limited.Observe(oauth.LimitVerifications, oauth.LimitSlowed)
	}
	return slot, nil
}

type verifierResult struct {
	principal oauth.Principal
	err       error
}

// verifyGranted verifies the token of a grant. It refuses with WrongHostToken when the site does not know the token, and with
// HostTokenNotVerifiable when the verifier panics, fails or takes too long (B8, B9).
func (g verifierGuard) verifyGranted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	return g.verifyWithin(ctx, g.granted, host)
}

// verifyPasted is verifyGranted for a pasted token.
func (g verifierGuard) verifyPasted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	return g.verifyWithin(ctx, g.pasted, host)
}

func (g verifierGuard) verifyWithin(ctx context.Context, slots chan struct{}, host oauth.HostToken) (oauth.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return oauth.Principal{}, notVerifiable(ctx.Err())
	}
	answer := make(chan verifierResult, 1)
	go func() {
		defer func() { <-slots }()
		answer <- g.call(ctx, host)
	}()
	select {
	case v := <-answer:
		return v.principal, verifierRefusal(v.err)
	case <-ctx.Done():
		return oauth.Principal{}, notVerifiable(ctx.Err())
	}
}

// call turns a panic into an error. It drops the value of the panic, which may contain the token (B15).
func (g verifierGuard) call(ctx context.Context, host oauth.HostToken) (v verifierResult) {
	defer func() {
		if recover() != nil {
			v = verifierResult{err: oauth.VerifierUnavailable("the site's verifier panicked")}
		}
	}()
	principal, err := g.verifyValues(ctx, host.Values())
	if err != nil {
		return verifierResult{err: err}
	}
	if err := principal.Check(); err != nil {
		return verifierResult{err: oauth.VerifierMisconfigured("the site's verifier named a person who cannot be: " + err.Error())}
	}
	if principal.Reveals(host, g.fields) {
		return verifierResult{err: oauth.VerifierMisconfigured("the site's verifier named the token itself as subject or role, which would be stored in clear")}
	}
	return verifierResult{principal, nil}
}

// verifyValues verifies all fields if the verifier can, else the token. Values that the fields do not accept any more are invalid, so that the person
// connects again (J16).
func (g verifierGuard) verifyValues(ctx context.Context, values credential.Values) (oauth.Principal, error) {
	if !g.fields.Accept(values) {
		return oauth.Principal{}, fmt.Errorf("the fields of the site have changed: %w", oauth.ErrUnknownBearer)
	}
	if all, ok := g.verifier.(oauth.FieldsVerifier); ok && len(g.fields) > 0 {
		return all.VerifyFields(ctx, values)
	}
	return g.verifier.VerifyBearer(ctx, values[credential.Token])
}

func verifierRefusal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, oauth.ErrUnknownBearer):
		return oauth.Refuse(oauth.WrongHostToken, "B8", "the site does not know this token")
	}
	return notVerifiable(err)
}

func notVerifiable(err error) error {
	if mistake := oauth.VerifierMisconfigured(""); errors.As(err, &mistake) {
		return oauth.RefuseFor(verifyTimeout, oauth.MisconfiguredVerifier, "B24", "the site cannot check tokens: its operator has to correct the configuration", loggable(err))
	}
	return oauth.RefuseFor(verifyTimeout, oauth.HostTokenNotVerifiable, "B9", "the site cannot check tokens just now", loggable(err))
}

// loggable keeps only the type of a foreign error, because its text may contain the token (B15): the error of an HTTP client contains the URL.
func loggable(err error) error {
	var own oauth.VerifierUnavailable
	switch {
	case errors.As(err, &own): // without the text of the wrapping errors
		return own
	case err == context.DeadlineExceeded, err == context.Canceled: //nolint:errorlint // the text of a wrapping error may contain the token
		return err
	}
	return fmt.Errorf("the site's verifier failed with %T", err)
}
