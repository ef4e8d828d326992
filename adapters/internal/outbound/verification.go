package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	answerTimeout = 4 * time.Second // less than the 5 s of the caller
	idleLimit     = 4 * time.Second // shorter than the keep-alive of Node and Python
	idlePerServer = 4
)

// Client returns the client of a verifier. It follows no redirect, which would see the token.
func (o Options) Client() *http.Client {
	return &http.Client{
		Timeout:       answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     o.Transport(idlePerServer, idleLimit),
	}
}

// IsSendable reports whether a token can be sent in a header unchanged.
func IsSendable(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Mistake is a Problem that lasts until the operator corrects the configuration.
type Mistake string

// Error implements error.
func (m Mistake) Error() string { return string(m) }

// CannotVerify logs and returns the error of a verifier whose request has failed, without the query
// of its URL, which may contain a key.
func CannotVerify(ctx context.Context, logger *slog.Logger, to *url.URL, err error) error {
	at := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	logger.ErrorContext(ctx, "cannot verify tokens at the site", "url", at.String(), "reason", err)
	reason := fmt.Sprintf("verifying a token at %s: %v", at.String(), err)
	if wrong := Mistake(""); errors.As(err, &wrong) {
		return oauth.VerifierMisconfigured(reason)
	}
	return oauth.VerifierUnavailable(reason)
}
