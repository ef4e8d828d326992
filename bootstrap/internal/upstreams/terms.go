// Package upstreams holds a host's own gateway and that of the command line to the same rules.
package upstreams

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/http/upstream"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Credentials towards an upstream.
const (
	HostToken = "host-token"
	Static    = "static"
	None      = "none"
)

// DefaultPatience is how long the answer to a POST may take to begin.
const DefaultPatience = 5 * time.Minute

const minSigningSecret = 32 // bytes

// Credentials are all that there are.
var Credentials = []string{HostToken, Static, None}

// Terms are how an upstream is asked, and as whom.
type Terms struct {
	Credential, Secret, SigningSecret string
	Host                              string // that the upstream is asked under; "" for that of its URL
	Headers                           []string
	Patience                          time.Duration
}

// Check reports every mistake at once.
func (t Terms) Check() error {
	mistakes := []error{t.checkSecrets()}
	if t.Patience < time.Second || t.Patience > time.Hour {
		mistakes = append(mistakes, oauth.NewMistake("%s is %s: choose 1s to 1h", oauth.Field("Gateway.Patience"), t.Patience))
	}
	if t.Host != "" {
		if err := oauth.CheckHost(t.Host); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("%s has %q: %s", oauth.Field("Gateway.Host"), t.Host, err))
		}
	}
	for _, name := range t.Headers {
		if err := upstream.CheckHeader(name); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("%s has %q: %s", oauth.Field("Gateway.Headers"), name, err))
		}
	}
	return errors.Join(mistakes...)
}

func (t Terms) checkSecrets() error {
	static := t.Credential == Static
	switch {
	case !slices.Contains(Credentials, t.Credential):
		return oauth.NewMistake("%s is %q: choose one of %s", oauth.Field("Credential"), t.Credential, strings.Join(Credentials, ", "))
	case !static && t.Secret+t.SigningSecret != "":
		return oauth.NewMistake("%s or %s is set, but %s is %q: leave them out, or choose %q", oauth.Field("Gateway.Secret"), oauth.Field("Gateway.SigningSecret"),
			oauth.Field("Credential"), t.Credential, Static)
	case static && (t.Secret == "" || strings.ContainsFunc(t.Secret, func(r rune) bool { return r <= ' ' || r > '~' })):
		return oauth.NewMistake("%s is empty or has characters that no header can carry: %s %q needs it", oauth.Field("Gateway.Secret"), oauth.Field("Credential"), Static)
	case static && (len(t.SigningSecret) < minSigningSecret || t.SigningSecret == t.Secret):
		return oauth.NewMistake("%s has to have %d bytes or more, and to be another one than %s, which others may hold too",
			oauth.Field("Gateway.SigningSecret"), minSigningSecret, oauth.Field("Gateway.Secret"))
	}
	return nil
}
