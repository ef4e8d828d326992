package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
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

var credentials = []string{CredentialHostToken, CredentialStatic, CredentialNone}

const minSigningSecret = 32 // bytes

// Address is where an MCP server is: a URL, or a program that speaks MCP over its standard streams.
// Each session gets a process of its own, which runs as the user of this process.
type Address struct {
	URL     string            `json:"url,omitempty" yaml:"url,omitempty" jsonschema:"URL of the server's MCP endpoint"`
	Command string            `json:"command,omitempty" yaml:"command,omitempty" jsonschema:"program that speaks MCP over its standard streams: a path, or a name that is looked up in PATH"`
	Args    []string          `json:"args,omitempty" yaml:"args,omitempty" jsonschema:"arguments of the command"`
	Dir     string            `json:"dir,omitempty" yaml:"dir,omitempty" jsonschema:"working folder of the program; the default is the root folder"`
	Env     map[string]string `json:"env,omitempty" yaml:"env,omitempty" jsonschema:"the whole environment of the program, as templates such as {token}"`

	Mistake error `json:"-" yaml:"-"` // in the text of the address, for Config.Check
}

// Config describes how a gateway calls MCP servers. The tagged fields are settings of the service;
// WithDefaults gives zero fields their defaults.
type Config struct {
	Host          string        `set:"upstream-host" unset:"the host of each upstream" example:"localhost:9000" doc:"Host header for the upstreams and for \"verifier: upstream\", if they refuse the host in their URL"`
	Credential    string        `set:"credential" default:"host-token" choices:"host-token,static,none" doc:"credential for the upstreams: the pasted token of the person, one shared secret, or none"`
	Secret        string        `set:"upstream-secret" secret:"true" doc:"secret that \"credential: static\" sends"`
	SigningSecret string        `set:"signing-secret" secret:"true" doc:"key for signing the headers that identify the caller, for \"credential: static\"; 32 bytes or more"`
	Present       []string      `set:"present" unset:"Authorization: Bearer {token}" example:"['X-Api-Key: {token}']" allowed:"texts in quotes such as 'X-Api-Key: {token}'" doc:"headers or query parameters in which the credential is sent, each as \"Header: template\" or \"?parameter=template\" with {token} in the template"`
	Headers       []string      `set:"forward-headers" example:"[X-Toolsets]" doc:"client headers that are forwarded to the upstreams, besides those of MCP"`
	Parameters    []string      `set:"forward-parameters" example:"[read_only]" doc:"query parameters that clients may add to the address of the MCP server, and that are forwarded to the upstreams; any other is refused"`
	BindTools     bool          `set:"bind-tools" doc:"let clients see and call only the tools of their first list, while these are as they were then; a person sees what has changed and approves again"`
	Patience      time.Duration `set:"upstream-timeout" default:"5m" min:"1s" max:"1h" doc:"time limit for the start of an upstream's response, and of a program"`
	MaxProcesses  int           `set:"stdio-max-processes" default:"200" min:"1" doc:"maximum number of processes of each upstream that is a program, of which one person may have a twentieth; beyond it, a new session ends the longest-idle process of the person who has the most"`
	IdleTimeout   time.Duration `set:"stdio-idle-timeout" default:"15m" min:"1s" doc:"time after which the process of an idle session ends: one without a request, an open call or a listening client"`
	Memory        int64         `set:"stdio-memory" default:"2GiB" min:"32MiB" doc:"limit on the data memory of each process, on Linux"`

	// The MCP server is also the verifier of pasted tokens, so it must not accept every key.
	VerifiesTokens bool

	HostFields credential.Fields // that people enter; nil for the field "token" alone
	Reach      Reach
	Observe    func(Request) // called for each request to an upstream; nil for none
	Now        func() time.Time
	Logger     *slog.Logger
}

// Reach configures the connections to a server of the site.
type Reach = outbound.Options

// Request is a request to an upstream, for metrics.
type Request struct {
	Method string
	Status int           // 0 without a response
	Took   time.Duration // until the header of the response
}

// WithDefaults returns the config with the defaults of its settings.
func (c Config) WithDefaults() Config {
	c.Credential = cmp.Or(c.Credential, CredentialHostToken)
	c.Patience = cmp.Or(c.Patience, 5*time.Minute)
	c.MaxProcesses = cmp.Or(c.MaxProcesses, 200)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 15*time.Minute)
	c.Memory = cmp.Or(c.Memory, 2<<30)
	return c
}

// Check reports all mistakes of a gateway to the addresses in one error. It checks the options of
// HTTP requests unless every address is a program.
func (c Config) Check(addresses ...Address) error {
	var mistakes []error
	for i, a := range addresses {
		for _, err := range c.checkAddress(a) {
			if len(addresses) > 1 {
				err = fmt.Errorf("number %d: %w", i+1, err)
			}
			mistakes = append(mistakes, oauth.NewMistake("upstream", ": %w", err))
		}
	}
	hasURL := len(addresses) == 0 || slices.ContainsFunc(addresses, func(a Address) bool { return !a.IsProgram() })
	check := func(name string, value any, isIn bool, allowed string) {
		if !isIn {
			mistakes = append(mistakes, oauth.NewMistake(name, "is %v: choose %s", value, allowed))
		}
	}
	mistakes = append(mistakes, c.checkCredential(hasURL))
	check("Patience", c.Patience, c.Patience >= time.Second && c.Patience <= time.Hour, "1s to 1h")
	check("MaxProcesses", c.MaxProcesses, c.MaxProcesses >= 1, "1 or more")
	check("IdleTimeout", c.IdleTimeout, c.IdleTimeout >= time.Second, "1s or more")
	check("Memory", c.Memory, c.Memory >= 32<<20, "33554432 bytes or more")
	if hasURL {
		mistakes = append(mistakes, c.checkHTTP())
	}
	return errors.Join(mistakes...)
}

func (c Config) checkCredential(sendsHeaders bool) error {
	isStatic := c.Credential == CredentialStatic
	switch {
	case !slices.Contains(credentials, c.Credential):
		return oauth.NewMistake("Credential", "is %q: choose one of %s", c.Credential, strings.Join(credentials, ", "))
	case !isStatic && c.Secret+c.SigningSecret != "":
		return oauth.NewMistake("Secret", "or the signing secret is set, but the credential is %q: leave them out, or "+
			"choose %q", c.Credential, CredentialStatic)
	case isStatic && (c.Secret == "" || sendsHeaders && !outbound.IsSendable(c.Secret)):
		return oauth.NewMistake("Secret", "is empty or has characters that no header can carry: the credential %q "+
			"needs it", CredentialStatic)
	case isStatic && sendsHeaders && (len(c.SigningSecret) < minSigningSecret || c.SigningSecret == c.Secret):
		return oauth.NewMistake("SigningSecret", "has to have %d bytes or more and to differ from the secret, which "+
			"others may know", minSigningSecret)
	}
	return nil
}

// checkHTTP reports the mistakes of the options that only requests have.
func (c Config) checkHTTP() error {
	var mistakes []error
	if c.Host != "" {
		if err := guard.CheckHost(c.Host); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("Host", "has %q: %w", c.Host, err))
		}
	}
	presented, err := c.checkPresent()
	mistakes = append(mistakes, err)
	for _, name := range c.Headers {
		if err := checkHeader(name); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("Headers", "has %q: %w", name, err))
		} else if slices.Contains(presented.Headers(), http.CanonicalHeaderKey(name)) {
			mistakes = append(mistakes, oauth.NewMistake("Headers", "has %q, which present sets: leave it out of one "+
				"of them", name))
		}
	}
	for _, name := range c.Parameters {
		if url.QueryEscape(name) != name || slices.Contains(presented.Parameters(), name) {
			mistakes = append(mistakes, oauth.NewMistake("Parameters", "has %q: write the name of a query parameter "+
				"that present does not set", name))
		}
	}
	return errors.Join(mistakes...)
}

func (c Config) checkPresent() (presented secret.Presentation, err error) {
	switch {
	case c.Credential != CredentialHostToken && len(c.HostFields) > 1:
		return presented, oauth.NewMistake("HostFields", "has %d fields, but the credential is %q, so that the MCP "+
			"server gets none of them: choose %q, or ask for one field", len(c.HostFields), c.Credential,
			CredentialHostToken)
	case c.Credential == CredentialNone && len(c.Present) > 0:
		return presented, oauth.NewMistake("Present", "is set, but the credential is %q: leave it out", c.Credential)
	}
	presented, wrong := secret.Parse(c.Present, c.Fields())
	if len(wrong) == 0 {
		for _, name := range presented.Unused() {
			wrong = append(wrong, fmt.Errorf("no entry has {%s}, so that the server would not get it: write it where "+
				"it belongs", name))
		}
	}
	var mistakes []error
	for _, mistake := range wrong {
		mistakes = append(mistakes, oauth.NewMistake("Present", ": %w", mistake))
	}
	return presented, errors.Join(mistakes...)
}

func checkHeader(name string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New("it is not a header name")
	case strings.Contains(name, "_"):
		return errors.New("it has an underscore, which some servers read as a hyphen: such headers are never forwarded")
	case canonical == "Authorization", canonical == "Cookie":
		return errors.New("it is never forwarded from clients")
	case secret.IsReserved(canonical):
		return errors.New("the gateway itself decides about it: leave it out")
	}
	return nil
}

// Fields returns the fields whose values the upstream gets: those that a person enters, or the one
// for the secret of all callers.
func (c Config) Fields() credential.Fields {
	if c.Credential == CredentialStatic {
		return credential.Single()
	}
	return c.HostFields
}

// Presentation returns how requests carry the credential. Call Check before, as for Environment.
func (c Config) Presentation() secret.Presentation {
	presented, _ := secret.Parse(c.Present, c.Fields())
	return presented
}

// Environment returns how a program gets the credential.
func (c Config) Environment(a Address) secret.Presentation {
	environment, _ := secret.ParseEnvironment(a.Env, c.Fields())
	return environment
}

// Values returns what the upstream gets for a caller; nil for no credential. It fails with
// oauth.ErrUnknownBearer for values that the fields do not accept any more.
func (c Config) Values(host oauth.HostToken) (credential.Values, error) {
	switch c.Credential {
	case CredentialStatic:
		return credential.Values{credential.Token: c.Secret}, nil
	case CredentialNone:
		return nil, nil
	}
	values := host.Values()
	if !c.HostFields.Accept(values) {
		return nil, oauth.ErrUnknownBearer
	}
	return values, nil
}

// IsProgram reports whether the MCP server is a program. Only the text of a program has a Mistake.
func (a Address) IsProgram() bool {
	return a.Command != "" || len(a.Args) > 0 || a.Dir != "" || len(a.Env) > 0 || a.Mistake != nil
}

// Path returns the full path of the command.
func (a Address) Path() (string, error) {
	if a.Command == "" {
		return "", errors.New("the program has no command: write one, such as npx")
	}
	path, err := exec.LookPath(a.Command)
	if err != nil {
		return "", fmt.Errorf("the command %q cannot be run (%w): install it where the PATH of the gateway finds it, "+
			"or write its full path", a.Command, errors.Unwrap(err))
	}
	return filepath.Abs(path)
}

func (c Config) checkAddress(a Address) (mistakes []error) {
	switch {
	case a.Mistake != nil:
		return []error{a.Mistake}
	case !a.IsProgram():
		if err := c.Reach.CheckURL(a.URL); err != nil {
			mistakes = append(mistakes, err)
		}
		return mistakes
	case a.URL != "":
		mistakes = append(mistakes, errors.New("it has a URL and a command: keep one"))
	}
	if _, err := a.Path(); err != nil {
		mistakes = append(mistakes, err)
	}
	if a.Dir != "" && !filepath.IsAbs(a.Dir) {
		mistakes = append(mistakes, fmt.Errorf("the working folder %q is relative: write its full path", a.Dir))
	}
	words := strings.Join(append([]string{a.Command, a.Dir}, a.Args...), " ")
	if strings.ContainsRune(words, 0) {
		mistakes = append(mistakes, errors.New("the command has a NUL: remove it"))
	}
	if slices.ContainsFunc(c.Fields().Names(), func(name string) bool {
		return strings.Contains(words, "{"+name+"}")
	}) {
		mistakes = append(mistakes, errors.New("an argument has {token} or another field, but all users of this "+
			"computer can read arguments: put it into the environment"))
	}
	environment, wrong := secret.ParseEnvironment(a.Env, c.Fields())
	unused := environment.Unused()
	switch {
	case len(wrong) > 0:
	case c.Credential != CredentialNone:
		for _, name := range unused {
			wrong = append(wrong, fmt.Errorf("no variable has {%s}, so that the program would not get it: set one, "+
				"such as API_KEY={%s}, or choose the credential %q", name, name, CredentialNone))
		}
	case len(unused) < len(c.Fields().Names()):
		wrong = append(wrong, fmt.Errorf("the environment has {token} or another field, but the credential is %q: "+
			"leave it out, or choose %q", c.Credential, CredentialHostToken))
	}
	return append(mistakes, wrong...)
}
