package application

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/recovered"
)

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
	principal, err = g.ask(ctx, host.Values())
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

// ask verifies all fields if the verifier can, else the token. Values that the fields do
// not accept any more are invalid, so that the person connects again.
func (g verifierGuard) ask(ctx context.Context, values credential.Values) (oauth.Principal, error) {
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
		var cause error
		if reason := oauth.UnknownBearer(""); errors.As(err, &reason) {
			cause = reason
		}
		return oauth.Refuse(oauth.WrongHostToken, "B8", "the site does not know this token", cause)
	}
	return notVerifiable(err)
}

func notVerifiable(err error) error {
	if mistake := oauth.VerifierMisconfigured(""); errors.As(err, &mistake) {
		return oauth.RefuseFor(verifyTimeout, oauth.MisconfiguredVerifier, "B24",
			"the site cannot check tokens: its operator has to correct the configuration", err)
	}
	return oauth.RefuseFor(verifyTimeout, oauth.HostTokenNotVerifiable, "B9",
		"the site cannot check tokens just now", err)
}

// maxFailure is the length of a logged text in bytes.
const maxFailure = 2 << 10

// failure logs the text of the site's own error with the token replaced. It returns an error with
// the type alone, because the trace is stored, and an error may contain a part of the token that
// cannot be recognised.
func (g verifierGuard) failure(ctx context.Context, err error, host oauth.HostToken) error {
	if errors.Is(err, oauth.ErrUnknownBearer) {
		return err
	}
	var own oauth.VerifierUnavailable
	if errors.As(err, &own) { // without the text of the wrapping errors
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
