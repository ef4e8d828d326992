package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
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

const minSigningSecret = 32 // bytes

// Credentials returns the values of Upstream.Credential.
func Credentials() []string { return []string{CredentialHostToken, CredentialStatic, CredentialNone} }

// Upstream is an MCP server behind a gateway.
type Upstream struct {
	URL     string   // of its MCP endpoint, as CheckUpstreamURL describes it, unless it is a Program
	Program *Program // starts the MCP server instead of URL; nil for none
	UpstreamOptions

	// The MCP server is also the verifier of pasted tokens, so that one that accepts any key is a
	// mistake.
	VerifiesTokens bool

	Reach   upstream.Reach
	Observe func(UpstreamRequest) // called for each request to the upstream; nil for none
	Logger  *slog.Logger          // the default is that of the OAuth server
}

// UpstreamOptions are the options of an Upstream that several may share.
type UpstreamOptions struct {
	Host          string // the Host header; the default is the host of URL
	Credential    string // the default is CredentialHostToken, which needs oauth.Config.HostTokenInUse
	Secret        string // of CredentialStatic, sent to the upstream
	SigningSecret string // of CredentialStatic, at least 32 bytes; never sent
	// How the credential is sent, such as "X-Api-Key: {token}"; the default is "Authorization:
	// Bearer {token}".
	Present []string
	Headers []string // request headers to forward besides those of MCP
	// Query parameters of the MCP endpoint to forward; a request with any other gets 400.
	Parameters []string
	// BindTools lets a client see and call only the tools of its first list, while they are as they
	// were then.
	BindTools bool
	// Until the response to a POST begins, and a Program has answered initialize; the default is
	// upstream.DefaultPatience.
	Patience time.Duration

	ProgramLimits ProgramLimits
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
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", m.errNoOAuth("NewGateway"))
	}
	to = to.withDefaults(m.authz.config)
	parsed, err := to.parse(m.authz.config)
	if err := errors.Join(append(m.wrongOptions, err)...); err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	protection := gateway.Options{Options: m.protection()}
	protection.PassedHeaders = to.Headers
	if to.BindTools {
		protection.RecordTools = m.authz.server.BindTools()
	}
	own, _ := url.Parse(to.URL)
	protection.Parameter = func(name string) bool {
		return slices.Contains(to.Parameters, name) && !own.Query().Has(name)
	}
	if to.Credential == CredentialHostToken {
		protection.HostTokens = m.authz.server
	}
	if to.Program != nil {
		m.mountProgram(to, protection, parsed.program)
		return m, nil
	}
	if len(to.Present) > 0 && protection.HostTokens != nil {
		protection.TakeHostToken = parsed.presentation.Take
		protection.PassedHeaders = slices.Concat(to.Headers, parsed.presentation.Headers())
	}
	headers := to.Headers
	if protection.HasPolicy() {
		headers = append(slices.Clone(headers), "Accept-Encoding") // gateway.New sets it
	}
	o := upstream.Options{
		URL:        to.URL,
		Host:       to.Host,
		Credential: to.credential(protection.Options, parsed.presentation),
		Headers:    headers,
		Parameters: to.Parameters,
		Sessions:   m.authz.server.Settings().Keys,
		Resource:   protection.Resource,
		Patience:   to.Patience,
		Options:    to.Reach,
		Observe:    to.Observe,
		Logger:     to.Logger,
	}
	proxy, err := upstream.New(o)
	if err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	m.mounted = gateway.New(proxy, protection)
	m.keepState(proxy.Health, proxy.Failed(), proxy.Check)
	return m, nil
}

func (u Upstream) withDefaults(config oauth.Config) Upstream {
	u.Credential, u.Logger = cmp.Or(u.Credential, CredentialHostToken), cmp.Or(u.Logger, config.Logger)
	u.Patience, u.ProgramLimits = cmp.Or(u.Patience, upstream.DefaultPatience), u.ProgramLimits.withDefaults()
	return u
}

// parsedUpstream is what an Upstream says in texts.
type parsedUpstream struct {
	presentation secret.Presentation
	program      parsedProgram
}

// parse reports every mistake in one error.
func (u Upstream) parse(config oauth.Config) (parsed parsedUpstream, err error) {
	if u.Credential == CredentialHostToken && !config.HostTokenInUse {
		return parsed, oauth.NewMistake("Credential", "is %q: set HostTokenInUse in the oauth.Config, so that access "+
			"tokens can open the host token", u.Credential)
	}
	if u.Program != nil {
		parsed.program, err = u.parseProgram(config.HostFields)
		return parsed, err
	}
	parsed.presentation, err = u.UpstreamOptions.parse(config.HostFields)
	if reason := CheckUpstreamURL(u.URL); reason != nil {
		err = errors.Join(oauth.NewMistake("URL", ": %w", reason), err)
	}
	return parsed, err
}

// CheckUpstreamURL checks the URL of an upstream: https, or http on loopback and private addresses.
func CheckUpstreamURL(address string) error { return upstream.Reach{}.CheckURL(address) }

// Check reports the mistakes of the options of URLs in one error. The fields are those that
// people enter (oauth.Config.HostFields).
func (u UpstreamOptions) Check(fields credential.Fields) error {
	_, err := u.parse(fields)
	return err
}

func (u UpstreamOptions) parse(fields credential.Fields) (secret.Presentation, error) {
	presentation, err := u.parsePresent(fields)
	mistakes := []error{u.checkSecrets(), err}
	if u.Patience < upstream.LeastPatience || u.Patience > upstream.MostPatience {
		mistakes = append(mistakes,
			oauth.NewMistake("Patience", "is %s: choose %s to %s", u.Patience, upstream.LeastPatience,
				upstream.MostPatience))
	}
	if u.Host != "" {
		if err := guard.CheckHost(u.Host); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("Host", "has %q: %w", u.Host, err))
		}
	}
	for _, name := range u.Headers {
		if err := upstream.CheckHeader(name); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("Headers", "has %q: %w", name, err))
		}
	}
	for _, name := range u.Parameters {
		if url.QueryEscape(name) != name || slices.Contains(presentation.Parameters(), name) {
			mistakes = append(mistakes, oauth.NewMistake("Parameters", "has %q: write the name of a query parameter "+
				"that present does not set", name))
		}
	}
	return presentation, errors.Join(mistakes...)
}

func (u UpstreamOptions) checkSecrets() error {
	static := u.Credential == CredentialStatic
	switch {
	case !slices.Contains(Credentials(), u.Credential):
		return oauth.NewMistake("Credential", "is %q: choose one of %s", u.Credential,
			strings.Join(Credentials(), ", "))
	case !static && u.Secret+u.SigningSecret != "":
		return oauth.NewMistake("Secret", "or the signing secret is set, but the credential is %q: leave them out, or "+
			"choose %q", u.Credential, CredentialStatic)
	case static && (u.Secret == "" || strings.ContainsFunc(u.Secret, func(r rune) bool { return r <= ' ' || r > '~' })):
		return oauth.NewMistake("Secret", "is empty or has characters that no header can carry: the credential %q "+
			"needs it", CredentialStatic)
	case static && (len(u.SigningSecret) < minSigningSecret || u.SigningSecret == u.Secret):
		return oauth.NewMistake("SigningSecret", "has to have %d bytes or more and to differ from the secret, which "+
			"others may know", minSigningSecret)
	}
	return nil
}

func (u UpstreamOptions) parsePresent(fields credential.Fields) (parsed secret.Presentation, err error) {
	if u.Credential != CredentialHostToken && len(fields) > 1 {
		return parsed, oauth.NewMistake("HostFields", "has %d fields, but the credential is %q, so that the MCP "+
			"server gets none of them: choose %q, or ask for one field", len(fields), u.Credential,
			CredentialHostToken)
	}
	if len(u.Present) > 0 && u.Credential == CredentialNone {
		return parsed, oauth.NewMistake("Present", "is set, but the credential is %q: leave it out", u.Credential)
	}
	parsed, wrong := secret.Parse(u.Present, u.presented(fields))
	var mistakes []error
	if len(wrong) == 0 {
		wrong = checkUsed(parsed)
	}
	for _, mistake := range wrong {
		mistakes = append(mistakes, oauth.NewMistake("Present", ": %w", mistake))
	}
	for _, name := range u.Headers {
		if canonical := http.CanonicalHeaderKey(name); slices.Contains(parsed.Headers(), canonical) {
			mistakes = append(mistakes,
				oauth.NewMistake("Headers", "has %q, which present sets: leave it out of one of them", name))
		}
	}
	return parsed, errors.Join(mistakes...)
}

// checkUsed returns a mistake for each field that the server would not get.
func checkUsed(parsed secret.Presentation) (mistakes []error) {
	for _, name := range parsed.Unused() {
		mistakes = append(mistakes,
			fmt.Errorf("no entry has {%s}, so that the server would not get it: write it where it belongs", name))
	}
	return mistakes
}

// presented returns the fields that Present presents: those of a person, or the secret for all
// callers.
func (u UpstreamOptions) presented(fields credential.Fields) credential.Fields {
	if u.Credential == CredentialStatic {
		return credential.Single()
	}
	return fields
}

func (u Upstream) credential(protection guard.Options, presented secret.Presentation) upstream.Credential {
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
	return upstream.HostToken{Presentation: presented, VerifiesKeys: u.VerifiesTokens}
}
