package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// The credentials for an upstream.
const (
	CredentialHostToken = "host-token" // the token that the person pasted
	// One secret for all callers, and signed headers that identify the caller (RFC 9421).
	CredentialStatic = "static"
	CredentialNone   = "none"
)

// DefaultPatience is the default of Upstream.Patience.
const DefaultPatience = 5 * time.Minute

const minSigningSecret = 32 // bytes

// Credentials returns the values of Upstream.Credential.
func Credentials() []string { return []string{CredentialHostToken, CredentialStatic, CredentialNone} }

// Upstream is an MCP server behind a gateway.
type Upstream struct {
	URL           string // of its MCP endpoint, as CheckUpstreamURL describes it, unless it is a Program
	Host          string // the Host header; the default is the host of URL
	Credential    string // the default is CredentialHostToken, which needs oauth.Config.HostTokenInUse
	Secret        string // of CredentialStatic, sent to the upstream
	SigningSecret string // of CredentialStatic, at least 32 bytes; never sent
	// How the credential is sent, such as "X-Api-Key: {token}"; the default is "Authorization:
	// Bearer {token}".
	Present  []string
	Headers  []string      // request headers to forward besides those of MCP
	Patience time.Duration // until the response to a POST begins, 1s to 1h; the default is DefaultPatience

	// The MCP server is also the verifier of pasted tokens, so that one that accepts any key is a
	// mistake.
	VerifiesTokens bool

	Program       *Program // starts the MCP server instead of URL; nil for none
	ProgramLimits ProgramLimits

	Reach   outbound.Options
	Observe func(UpstreamRequest) // called for each request to the upstream; nil for none
	Logger  *slog.Logger          // the default is that of the OAuth server
}

// HostField is a value that people enter, for oauth.Config.HostFields.
type HostField = credential.Field

// UpstreamRequest is a request of the gateway to its upstream, for metrics.
type UpstreamRequest = upstream.Request

// NewGateway protects an MCP server at a URL, or a program that speaks MCP over its standard
// streams, written in any language. It needs WithOAuth, and reports all mistakes of the Upstream in
// one error.
func NewGateway(to Upstream, options ...MCPOption) (*MCPServer, error) {
	m := newMCPServer(options)
	if m.authz == nil {
		return nil, errors.New(
			"opening the gateway to an upstream: it has no OAuth server: pass WithOAuth to NewGateway")
	}
	to = to.withDefaults(m.authz.config)
	if err := errors.Join(append(m.wrongOptions, to.check(m.authz.config))...); err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	protection := m.protection()
	protection.PassedHeaders = to.Headers
	if to.Credential == CredentialHostToken {
		protection.HostTokens = m.authz.server
	}
	fields := m.authz.config.HostFields
	if to.Program != nil {
		return m, m.mountProgram(to, protection, fields)
	}
	headers := to.Headers
	if protection.HasPolicy() {
		headers = append(slices.Clone(headers), "Accept-Encoding") // mcp.NewGateway sets it
	}
	proxy, err := to.open(fields, upstream.Options{
		URL:         to.URL,
		Host:        to.Host,
		MessagePath: mcp.MessagePath(protection.Resource),
		Credential:  to.credential(protection, fields),
		Headers:     headers,
		Sessions:    m.authz.server.Settings().Keys,
		Resource:    protection.Resource,
		Patience:    to.Patience,
		Options:     to.Reach,
		Observe:     to.Observe,
		Logger:      to.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	m.mounted = mcp.NewGateway(proxy, protection)
	m.keepState(proxy.Health, proxy.Failed(), to.judging(proxy.Check))
	return m, nil
}

func (u Upstream) withDefaults(config oauth.Config) Upstream {
	u.Credential, u.Logger = cmp.Or(u.Credential, CredentialHostToken), cmp.Or(u.Logger, config.Logger)
	u.Patience, u.ProgramLimits = cmp.Or(u.Patience, DefaultPatience), u.ProgramLimits.withDefaults()
	return u
}

func (u Upstream) check(config oauth.Config) error {
	if u.Credential == CredentialHostToken && !config.HostTokenInUse {
		return oauth.NewMistake("%s is %q: set %s, so that access tokens can open the host token",
			oauth.Field("Credential"), u.Credential, oauth.Field(oauth.OfConfig+"HostTokenInUse"))
	}
	if u.Program != nil {
		return u.checkProgram(config.HostFields)
	}
	err := u.CheckOptions(config.HostFields, u.URL)
	if reason := CheckUpstreamURL(u.URL, config.HostFields); reason != nil {
		err = errors.Join(oauth.NewMistake("%s: %s", oauth.Field("URL"), reason), err)
	}
	if credential.IsTarget(u.URL) {
		err = errors.Join(err, u.checkRouted())
	}
	return err
}

// CheckOptions reports the mistakes of every field but URL, in one error. The fields are those that
// people enter (oauth.Config.HostFields), and the urls those of all upstreams with these options,
// which may name a field.
func (u Upstream) CheckOptions(fields credential.Fields, urls ...string) error {
	mistakes := []error{u.checkSecrets(), u.checkPresent(fields, urls)}
	if u.Patience < time.Second || u.Patience > time.Hour {
		mistakes = append(mistakes,
			oauth.NewMistake("%s is %s: choose 1s to 1h", oauth.Field("Patience"), u.Patience))
	}
	if u.Host != "" {
		if err := oauth.CheckHost(u.Host); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("%s has %q: %s", oauth.Field("Host"), u.Host, err))
		}
	}
	for _, name := range u.Headers {
		if err := upstream.CheckHeader(name); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("%s has %q: %s", oauth.Field("Headers"), name, err))
		}
	}
	return errors.Join(mistakes...)
}

func (u Upstream) checkSecrets() error {
	static := u.Credential == CredentialStatic
	secret, signing, credential := oauth.Field("Secret"), oauth.Field("SigningSecret"),
		oauth.Field("Credential")
	switch {
	case !slices.Contains(Credentials(), u.Credential):
		return oauth.NewMistake("%s is %q: choose one of %s", credential, u.Credential,
			strings.Join(Credentials(), ", "))
	case !static && u.Secret+u.SigningSecret != "":
		return oauth.NewMistake("%s or %s is set, but %s is %q: leave them out, or choose %q", secret, signing,
			credential, u.Credential, CredentialStatic)
	case static && (u.Secret == "" || strings.ContainsFunc(u.Secret, func(r rune) bool { return r <= ' ' || r > '~' })):
		return oauth.NewMistake("%s is empty or has characters that no header can carry: %s %q needs it", secret,
			credential, CredentialStatic)
	case static && (len(u.SigningSecret) < minSigningSecret || u.SigningSecret == u.Secret):
		return oauth.NewMistake("%s has to have %d bytes or more and to differ from %s, which others may know", signing,
			minSigningSecret, secret)
	}
	return nil
}

func (u Upstream) checkPresent(fields credential.Fields, urls []string) error {
	if u.Credential != CredentialHostToken && len(fields) > 1 {
		return oauth.NewMistake("%s has %d fields, but %s is %q, so that the MCP server gets none of them: choose "+
			"%q, or ask for one field",
			oauth.Field(oauth.OfConfig+"HostFields"), len(fields), oauth.Field("Credential"), u.Credential,
			CredentialHostToken)
	}
	if len(u.Present) > 0 && u.Credential == CredentialNone {
		return oauth.NewMistake("%s is set, but %s is %q: leave it out", oauth.Field("Present"),
			oauth.Field("Credential"), u.Credential)
	}
	parsed, wrong := secret.Parse(u.Present, u.presented(fields))
	var mistakes []error
	if len(wrong) == 0 {
		wrong = checkUsed(parsed, fields, urls)
	}
	for _, mistake := range wrong {
		mistakes = append(mistakes, oauth.NewMistake("%s: %s", oauth.Field("Present"), mistake))
	}
	for _, name := range u.Headers {
		if canonical := http.CanonicalHeaderKey(name); slices.Contains(parsed.Headers(), canonical) {
			mistakes = append(mistakes,
				oauth.NewMistake("%s has %q, which %s sets: leave it out of one of them",
					oauth.Field("Headers"), name, oauth.Field("Present")))
		}
	}
	return errors.Join(mistakes...)
}

// checkUsed returns a mistake for each field that the server would not get.
func checkUsed(parsed secret.Presentation, fields credential.Fields, urls []string) (mistakes []error) {
	var addresses []string
	for _, url := range urls {
		target, _ := fields.ParseTarget(url) // a URL has no field
		addresses = append(addresses, target.Field().Name)
	}
	for _, name := range parsed.Unused() {
		if !slices.Contains(addresses, name) {
			mistakes = append(mistakes,
				fmt.Errorf("no entry has {%s}, so that the server would not get it: write it where it belongs", name))
		}
	}
	return mistakes
}

// presented returns the fields that Present presents: those of a person, or the secret for all
// callers.
func (u Upstream) presented(fields credential.Fields) credential.Fields {
	if u.Credential == CredentialStatic {
		return credential.Single()
	}
	return fields
}

func (u Upstream) credential(protection mcp.Options, fields credential.Fields) upstream.Credential {
	presented, _ := secret.Parse(u.Present, u.presented(fields)) // was checked
	switch u.Credential {
	case CredentialStatic:
		return upstream.Static{
			Secret:       u.Secret,
			Presentation: presented,
			Signer:       upstream.Signer{Key: []byte(u.SigningSecret), Now: protection.Now},
			Resource:     protection.Resource,
		}
	case CredentialNone:
		return upstream.None{}
	}
	return upstream.HostToken{Presentation: presented}
}
