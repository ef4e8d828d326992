package application

import (
	"context"
	"log/slog"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// verifyTimeout bounds a call of the verifier.
	verifyTimeout = 5 * time.Second
	// grantedSlots bounds the concurrent calls of the verifier for grants, so that a verifier that
	// hangs cannot pile up goroutines. Pasted tokens have separate slots, so that they cannot delay
	// a refresh.
	grantedSlots = 64
	// slotsPerToken bounds the concurrent verifications of one pasted token.
	slotsPerToken = 4
	// queueTimeout bounds the wait of a pasted token for its verification.
	queueTimeout = 10 * time.Second
	// The number of waiting claims for each slot, in total and of one address.
	waitingPerSlot           = 16
	waitingPerSlotAndAddress = 8
	// One token may have a quarter of the waiting claims of its address, so that a flood of one
	// token leaves room for those of others.
	waitingTokenDivisor = 4
)

// verifierGuard calls a verifier of the site, recovers from its panics and bounds its running time.
// Each verifier has a separate guard, so that one that hangs does not use up the slots of another.
type verifierGuard struct {
	verifier oauth.BearerVerifier
	granted  chan struct{} // semaphore of running calls for tokens of grants
	pasted   chan struct{} // the same for pasted tokens: a verifier that ignores ctx outlasts the slot
	slots    oauth.Slots   // for pasted tokens
	listings oauth.Slots   // for lists of tools before an approval, which take longer
	fields   credential.Fields
	logger   *slog.Logger
}

func newVerifierGuard(verifier oauth.BearerVerifier, settings *oauth.Settings, ports Ports) verifierGuard {
	limits := settings.Limits
	newSlots := func() oauth.Slots {
		return ports.NewSlots(limits.MaxVerifications, waitingPerSlot*limits.MaxVerifications)
	}
	return verifierGuard{
		verifier: verifier,
		granted:  make(chan struct{}, grantedSlots),
		pasted:   make(chan struct{}, limits.MaxVerifications),
		slots:    newSlots(),
		listings: newSlots(),
		fields:   settings.HostFields,
		logger:   ports.Logger,
	}
}

// guardFor returns the guard of the verifier of a resource.
func (s *Server) guardFor(resource oauth.Resource) verifierGuard {
	if own, has := s.ownGuards[resource]; has {
		return own
	}
	return s.guard
}

// acquireSlot waits for a slot for pasted tokens, for which networks take turns. It refuses with
// TooManyGuesses, for a second, when too many wait.
func (s *Server) acquireSlot(ctx context.Context, slots oauth.Slots, a *attempt) (release func(), waited bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	token := string(a.Token[:])
	claim := oauth.Claim{Network: a.By.Network(), Quotas: []oauth.Quota{{Key: token, Max: slotsPerToken}}}
	if a.By.Limited() {
		address, places := a.By.Address(), s.settings.Limits.MaxVerificationsPerAddress
		waiting := waitingPerSlotAndAddress * places
		claim.Quotas = append(claim.Quotas,
			oauth.Quota{Key: address, Max: places, MaxWaiting: waiting},
			oauth.Quota{Key: token + address, Max: slotsPerToken, MaxWaiting: max(1, waiting/waitingTokenDivisor)})
	}
	release, waited, err = slots.Acquire(ctx, claim)
	switch {
	case err != nil:
		s.ports.Limited.Observe(oauth.LimitVerifications, oauth.LimitRefused)
		return nil, false, oauth.RefuseFor(queueFullWait, oauth.TooManyGuesses, "B20",
			"too many tokens are being checked", err)
	case waited:
		s.ports.Limited.Observe(oauth.LimitVerifications, oauth.LimitSlowed)
	}
	return release, waited, nil
}

type verifierResult struct {
	principal oauth.Principal
	err       error
}

// verifyGranted verifies the token of a grant. It refuses with WrongHostToken when the site does
// not know the token, and with HostTokenNotVerifiable when the verifier panics, fails or takes too
// long.
func (g verifierGuard) verifyGranted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	return g.verifyWithin(ctx, g.granted, host)
}

// verifyPasted is verifyGranted for a pasted token.
func (g verifierGuard) verifyPasted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	return g.verifyWithin(ctx, g.pasted, host)
}

func (g verifierGuard) verifyWithin(ctx context.Context, slots chan struct{},
	host oauth.HostToken) (oauth.Principal, error) {
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
