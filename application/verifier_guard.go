package application

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// verifyTimeout bounds a call of the verifier.
	verifyTimeout = 5 * time.Second
	// queueTimeout bounds the wait of a pasted token for a call.
	queueTimeout = 10 * time.Second
	// approvalTimeout bounds the submission of a form, with its waits and all calls, so that the
	// person gets an answer before the server closes the connection after a minute.
	approvalTimeout = 50 * time.Second
)

// verifierGuard calls a verifier of the site, recovers from its panics and bounds its running time.
// Each verifier has a separate guard, so that one that hangs does not use up the calls of another.
type verifierGuard struct {
	verifier oauth.BearerVerifier
	calls    *semaphore.Weighted // under way, also those of a verifier that ignores its context
	pasted   *semaphore.Weighted // calls for pasted tokens, which leave a quarter to refreshes
	fields   credential.Fields
	limited  oauth.LimitObserver
	logger   *slog.Logger
}

func newVerifierGuard(verifier oauth.BearerVerifier, settings *oauth.Settings, ports Ports) verifierGuard {
	most := int64(settings.Limits.MaxVerifications)
	return verifierGuard{
		verifier: verifier,
		calls:    semaphore.NewWeighted(most),
		pasted:   semaphore.NewWeighted(max(1, most*3/4)),
		fields:   settings.HostFields,
		limited:  ports.Limited,
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

// verify verifies the token of a grant. It refuses with WrongHostToken when the site does not know
// the token, and with HostTokenNotVerifiable when the verifier panics, fails or takes too long. It
// calls done when the verifier has returned, which may outlast its context.
func (g verifierGuard) verify(ctx context.Context, host oauth.HostToken, done func()) (oauth.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if err := g.calls.Acquire(ctx, 1); err != nil {
		done()
		return oauth.Principal{}, notVerifiable(err)
	}
	var principal oauth.Principal
	var err error
	answered := make(chan struct{})
	go func() {
		defer done()
		defer g.calls.Release(1)
		defer close(answered)
		principal, err = g.call(ctx, host)
	}()
	select {
	case <-answered:
		return principal, verifierRefusal(err)
	case <-ctx.Done():
		return oauth.Principal{}, notVerifiable(ctx.Err())
	}
}

// verifyPasted is verify for a pasted token, which waits while many are being verified.
func (g verifierGuard) verifyPasted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	waiting, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if err := g.pasted.Acquire(waiting, 1); err != nil {
		g.limited.Observe(oauth.LimitVerifications, oauth.LimitRefused)
		return oauth.Principal{}, oauth.RefuseFor(time.Second, oauth.HostTokenNotVerifiable, "B20",
			"too many tokens are being checked", err)
	}
	return g.verify(ctx, host, func() { g.pasted.Release(1) })
}
