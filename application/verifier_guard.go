package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
	"github.com/pasteport/pasteport/domain/recovered"
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
	limited  quota.Observer
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
func (s *core) guardFor(resource oauth.Resource) verifierGuard {
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
		return oauth.Principal{}, verifierRefusal(err)
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
		return oauth.Principal{}, verifierRefusal(ctx.Err())
	}
}

// verifyPasted is verify for a pasted token, which waits while many are being verified.
func (g verifierGuard) verifyPasted(ctx context.Context, host oauth.HostToken) (oauth.Principal, error) {
	waiting, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if err := g.pasted.Acquire(waiting, 1); err != nil {
		g.limited.Observe(quota.Verifications, quota.Refused)
		return oauth.Principal{}, oauth.RefuseFor(time.Second, oauth.HostTokenNotVerifiable, "B20",
			"too many tokens are being checked", err)
	}
	return g.verify(ctx, host, func() { g.pasted.Release(1) })
}

// call calls the verifier. It logs what the host's own code did wrong: a panic with its type and
// stack, and the text of an error, both without the token.
func (g verifierGuard) call(ctx context.Context, host oauth.HostToken) (principal oauth.Principal, err error) {
	defer func() {
		if value := recover(); value != nil {
			panicked := recovered.New(value)
			g.logger.ErrorContext(ctx, "the site's verifier panicked", "type", panicked.Type, "stack", panicked.Stack)
			err = oauth.VerifierUnavailable("the site's verifier panicked with a value of type " + panicked.Type)
		}
	}()
	values := host.Values()
	switch all, ok := g.verifier.(oauth.FieldsVerifier); {
	case !g.fields.Accept(values): // the grant ends, and the person connects again
		err = fmt.Errorf("the fields of the site have changed: %w", oauth.ErrUnknownBearer)
	case ok && len(g.fields) > 0:
		principal, err = all.VerifyFields(ctx, values)
	default:
		principal, err = g.verifier.VerifyBearer(ctx, values[credential.Token])
	}
	if err != nil {
		return oauth.Principal{}, g.failure(ctx, err, host)
	}
	if err := principal.Check(); err != nil {
		return oauth.Principal{}, oauth.VerifierMisconfigured(
			"the site's verifier named a person who cannot be: " + err.Error())
	}
	if principal.Reveals(host, g.fields) {
		return oauth.Principal{}, oauth.VerifierMisconfigured(
			"the site's verifier named the token itself as subject or role, which would be stored in clear")
	}
	return principal, nil
}

func verifierRefusal(err error) error {
	mistake := oauth.VerifierMisconfigured("")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, oauth.ErrUnknownBearer):
		var cause error
		if reason := oauth.UnknownBearer(""); errors.As(err, &reason) {
			cause = reason
		}
		return oauth.Refuse(oauth.WrongHostToken, "B8", "the site does not know this token", cause)
	case errors.As(err, &mistake):
		return oauth.RefuseFor(verifyTimeout, oauth.MisconfiguredVerifier, "B24",
			"the site cannot check tokens: its operator has to correct the configuration", err)
	}
	return oauth.RefuseFor(verifyTimeout, oauth.HostTokenNotVerifiable, "B9",
		"the site cannot check tokens just now", err)
}

// maxFailure is the maximum length of a logged text, in bytes.
const maxFailure = 2 << 10

// failure logs the text of the site's own error with the token replaced. It returns an error with
// the type alone, because the trace is stored, and an error may contain a part of the token that
// cannot be recognised.
func (g verifierGuard) failure(ctx context.Context, err error, host oauth.HostToken) error {
	if errors.Is(err, oauth.ErrUnknownBearer) {
		return err
	}
	var own oauth.VerifierUnavailable
	if errors.As(err, &own) { // by its contract own has no token; the texts of wrapping errors are left out
		if text, ok := g.fields.Redact(string(own), host.Values()); ok {
			own = oauth.VerifierUnavailable(text)
		}
		if misconfigured := oauth.VerifierMisconfigured(""); errors.As(err, &misconfigured) {
			return oauth.VerifierMisconfigured(own)
		}
		return own
	}
	text, ok := g.fields.Redact(err.Error(), host.Values())
	if !ok {
		text = "(left out: the token is too short or the text too long to remove it)"
	}
	g.logger.ErrorContext(ctx, "the site's verifier failed", "type", fmt.Sprintf("%T", err), "error",
		strings.ToValidUTF8(text[:min(len(text), maxFailure)], ""))
	//nolint:errorlint // the text of a wrapping error may contain the token
	if err == context.DeadlineExceeded || err == context.Canceled {
		return err
	}
	return fmt.Errorf("the site's verifier failed with %T", err)
}
