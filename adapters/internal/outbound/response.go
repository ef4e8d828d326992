package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// IsJSON reports whether a media type is application/json or application/*+json, with any
// parameters.
func IsJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	subtype, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(mediaType)), "application/")
	return found && (subtype == "json" || len(subtype) > len("+json") && strings.HasSuffix(subtype, "+json"))
}

// Target describes the target of a redirect in our own words, because its text may have a key.
func Target(redirect *http.Response) string {
	to, err := redirect.Location()
	from := redirect.Request.URL
	switch {
	case err != nil:
		return "without an address"
	case to.Host != from.Host:
		return "to another host"
	case to.Scheme != from.Scheme:
		return "to another scheme at the same host"
	case to.Path == from.Path+"/":
		return "to the same address with a slash at the end of its path"
	case to.Path+"/" == from.Path:
		return "to the same address without the slash at the end of its path"
	}
	return "to another path or query there"
}

// HostAdvice tells the operator how to fix a refused host name.
const HostAdvice = "set upstream-host to a name that it allows, or let it allow the host of upstream"

var invalidHost = regexp.MustCompile(`(?i)invalid host( header|:|"|$)`)

// RefusesHost reports whether a response refuses the Host header: 421 from the Python SDK, or 403
// from the Go and TypeScript SDKs.
func RefusesHost(status int, body []byte) bool {
	return status == http.StatusMisdirectedRequest || status == http.StatusForbidden && invalidHost.Match(body)
}

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
