package service

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// GatewayConfig lists the MCP servers behind a gateway, and the options that they share.
type GatewayConfig struct {
	Upstreams []Upstream `set:"upstream" field:"MoreServers" example:"http://127.0.0.1:9000/mcp" allowed:"MCP servers such as \"http://127.0.0.1:9000/mcp\", \"/files = http://127.0.0.1:9001/mcp\" or 'stdio: npx -y package'" doc:"MCP servers behind \"pasteport gateway\". Each is \"URL\", \"stdio: command\", \"/path = URL\" or \"/path = stdio: command\", or a mapping with path, url, command, args, dir and env. Each server is a separate resource"`
	bootstrap.GatewayConfig
	Fields     []HostField `set:"fields" field:"HostFields" unset:"one token" example:"[{name: user, label: Your user name}, {name: token}]" allowed:"mappings such as {name: user}" doc:"what people enter instead of one token, each as a mapping with name, label, help, secret, pattern, default and required"`
	ToolScopes []ToolScope `set:"tool-scopes" example:"[delete_* = articles:write]" allowed:"scopes such as \"delete_* = articles:write\"" doc:"scopes that tools require, each as \"pattern = scope…\"; other tools require default-scopes"`
	Policy     PolicyConfig
	Connect    ConnectConfig
}

// HostField is a credential.Field as a mapping. Those with the names token and password are secret
// by default.
type HostField struct {
	Name     string `json:"name" yaml:"name" jsonschema:"name of the field in templates: lower-case letters, digits and underscores"`
	Label    string `json:"label,omitempty" yaml:"label,omitempty" jsonschema:"label on the pages; token, user and password have one"`
	Help     string `json:"help,omitempty" yaml:"help,omitempty" jsonschema:"text below the label"`
	Secret   *bool  `json:"secret,omitempty" yaml:"secret,omitempty" jsonschema:"hide the value, and remove it from responses; the default is true for token and password"`
	Pattern  string `json:"pattern,omitempty" yaml:"pattern,omitempty" jsonschema:"regular expression (RE2) that the whole value matches"`
	Default  string `json:"default,omitempty" yaml:"default,omitempty" jsonschema:"value that the field has at first"`
	Required *bool  `json:"required,omitempty" yaml:"required,omitempty" jsonschema:"whether the field needs a value; the default is true"`
}

// ToolScope lists the scopes that calls of matching tools need.
type ToolScope struct {
	Pattern string
	Scopes  []string
}

// UnmarshalText reads "pattern = scope…".
func (t *ToolScope) UnmarshalText(text []byte) error {
	pattern, names, found := strings.Cut(string(text), " = ")
	scopes := strings.Fields(names)
	if pattern = strings.TrimSpace(pattern); !found || pattern == "" || !access.IsPattern(pattern) || len(scopes) == 0 {
		return errors.New("it has no pattern or no scope")
	}
	*t = ToolScope{pattern, scopes}
	return nil
}

// MarshalText is the reverse of UnmarshalText.
func (t ToolScope) MarshalText() ([]byte, error) {
	return []byte(t.Pattern + " = " + strings.Join(t.Scopes, " ")), nil
}

// DemoName is the default name of the demo site on its pages, under any issuer.
const DemoName = "Demo site"

// resources makes the first upstream the Resource of config, and the others its MoreServers.
func (g GatewayConfig) resources(config oauth.Config) oauth.Config {
	if len(g.Upstreams) == 0 {
		return config
	}
	if first := g.Upstreams[0]; first.Path != "" && config.Issuer != "" {
		config.Resource = config.Issuer + first.Path
	}
	for _, further := range g.Upstreams[1:] {
		config.MoreServers = append(config.MoreServers,
			oauth.ProtectedServer{Resource: config.Issuer + further.Path, Name: config.ResourceName})
	}
	config.HostTokenInUse = g.Credential == bootstrap.CredentialHostToken
	return config
}

// check reports every mistake at once; config already contains the resources of the gateway. A key
// may be sent only to the upstream that issued it, and only the upstreams can tell which one did.
// An upstream that needs no key accepts every key, so it cannot verify one.
func (g GatewayConfig) check(config oauth.Config, verifier string) error {
	if len(g.Upstreams) == 0 {
		return nil
	}
	config = config.WithDefaults()
	var mistakes []error
	wrong := func(setting, sentence string, values ...any) {
		mistakes = append(mistakes, oauth.NewMistake(setting, sentence, values...))
	}
	var addresses []bootstrap.Upstream
	for i, u := range g.Upstreams {
		addresses = append(addresses, u.Upstream)
		if u.Path == "" && i > 0 {
			wrong("upstream", ": number %d has no path: write it as \"/path = URL\", because only the first one may "+
				"have no path", i+1)
		}
	}
	g.HostFields = config.HostFields
	mistakes = append(mistakes, g.GatewayConfig.Check(addresses...)) // which reads g.HostFields
	byUpstream, several := verifier == VerifierUpstream, len(g.Upstreams) > 1
	if g.hasProgram() && byUpstream {
		wrong("verifier", "is %q, but a program that is started for a key cannot tell whether the key is valid: "+
			"choose verifier %q, %q or %q", VerifierUpstream, VerifierHTTP, VerifierIntrospection, VerifierFile)
	}
	switch isHostToken := g.Credential == bootstrap.CredentialHostToken; {
	case g.hasProgram() && isHostToken && several:
		wrong("credential", "is %q for several upstreams, of which a program cannot tell which keys are its own: run "+
			"one gateway per upstream", g.Credential)
	case g.hasProgram(): // the verifier upstream is refused above
	case isHostToken && several && !byUpstream:
		wrong("credential", "is %q for several upstreams, but the verifier %q cannot tell which upstream a key "+
			"belongs to: choose the verifier %q, or one gateway per upstream", g.Credential, verifier, VerifierUpstream)
	case g.Credential == bootstrap.CredentialNone && byUpstream:
		wrong("credential", "is %q, but verifier is %q, and a server that needs no key accepts any token: choose "+
			"credential %q or %q, or verifier %q, %q or %q", g.Credential, verifier, bootstrap.CredentialHostToken,
			bootstrap.CredentialStatic, VerifierFile, VerifierHTTP, VerifierIntrospection)
	}
	for _, rule := range g.ToolScopes {
		for _, name := range rule.Scopes {
			if !slices.ContainsFunc(config.Scopes, func(s oauth.Scope) bool { return s.Name == name }) {
				wrong("tool-scopes", "has %q, which is not in scopes: add it there", name)
			}
		}
	}
	return errors.Join(mistakes...)
}

// toolScopes returns the scopes of all patterns that match the tool, which a call of it requires.
// It returns none if the default scopes apply. It ignores case, because the upstream may do so.
func (g GatewayConfig) toolScopes(tool string) (needed oauth.Scopes) {
	for _, rule := range g.ToolScopes {
		if access.Globs(strings.ToLower(rule.Pattern), strings.ToLower(tool)) {
			needed = needed.With(rule.Scopes...)
		}
	}
	return needed
}

// PolicyConfig has the rules for who may use the tools, prompts and resources of the upstreams, as
// package access reads them.
type PolicyConfig struct {
	Tools     []string `set:"tools" unset:"all" example:"[deny delete_*, allow *]" allowed:"rules such as \"allow read_*\" or \"deny delete_* for role:guest\"" doc:"which tools people see and may call. Each rule is \"allow pattern…\" or \"deny pattern…\". It applies to all people unless it continues with \"for role:name scope:name…\". The first rule that matches decides; what no rule matches is denied"`
	Prompts   []string `set:"prompts" unset:"all" example:"[allow * for role:editor]" allowed:"rules such as \"allow read_*\" or \"deny delete_* for role:guest\"" doc:"which prompts people see and may get, as rules like those in tools"`
	Resources []string `set:"resources" unset:"all" example:"[allow file:///public/*]" allowed:"rules such as \"allow read_*\" or \"deny delete_* for role:guest\"" doc:"which resources people see and may read, as rules like those in tools, but with patterns for URIs and URI templates"`
}

// options returns the options for the rules, and every mistake with the number of its rule.
func (p PolicyConfig) options(scopes oauth.ScopeCatalogue, haveRoles bool) (options []bootstrap.MCPOption, _ error) {
	containing := func(name string) (found []string) { // the scope itself and those that imply it
		for _, scope := range scopes.Known().Values() {
			if scopes.Expand(oauth.NewScopes(scope)).Has(name) {
				found = append(found, scope)
			}
		}
		return found
	}
	var mistakes []error
	for _, list := range []struct {
		name  string
		lines []string
		fold  func(name string) (folded string, ok bool)
		use   func(allows func(oauth.Caller, string) bool) bootstrap.MCPOption
	}{
		{"tools", p.Tools, access.FoldName, bootstrap.WithToolPolicy},
		{"prompts", p.Prompts, access.FoldName, bootstrap.WithPromptPolicy},
		{"resources", p.Resources, access.FoldURI, bootstrap.WithResourcePolicy},
	} {
		rules, wrong := access.Parse(list.lines, access.Vocabulary{
			Fold:   list.fold,
			Roles:  haveRoles,
			Scopes: containing,
		})
		for _, mistake := range wrong {
			mistakes = append(mistakes, oauth.NewMistake(list.name, ": %w", mistake))
		}
		if !rules.Empty() {
			options = append(options, list.use(rules.Permit))
		}
	}
	return options, errors.Join(mistakes...)
}

// ConnectConfig is how a gateway connects to its upstreams.
type ConnectConfig struct {
	CAFile   string   `set:"upstream-ca" unset:"only those of the system" path:"file" example:"/etc/pasteport/upstream-ca.pem" doc:"PEM file with certificate authorities to trust for upstreams, besides those of the system"`
	CertFile string   `set:"upstream-cert" unset:"none" path:"file" example:"/etc/pasteport/upstream-cert.pem" doc:"PEM file with the certificate chain that the gateway presents to upstreams; reloaded when it changes"`
	KeyFile  string   `set:"upstream-key" path:"file" example:"/etc/pasteport/upstream-key.pem" doc:"PEM file with the private key of upstream-cert"`
	Proxy    *url.URL `set:"upstream-proxy" secret:"true" allowed:"a URL whose password has %2F for a slash and %23 for #" doc:"http:// or https:// URL of the proxy for https upstreams; upstreams over http are reached directly"`
}

// reach returns how the gateway reaches its upstreams, or every mistake.
func (c ConnectConfig) reach(config Config) (gateway.Reach, error) {
	roots, err := WithAuthorities(config.RootCAs, c.CAFile)
	reach := gateway.Reach{Proxy: c.Proxy, RootCAs: roots}
	mistakes := []error{reach.CheckProxy("upstream-proxy"), mistaken("upstream-ca", "cannot be read", err)}
	if c.CertFile+c.KeyFile != "" {
		files, err := certificates.OpenFiles("upstream", c.CertFile, c.KeyFile, config.Now, config.Logger)
		if mistakes = append(mistakes, err); err == nil {
			reach.Certificate = files.Client
		}
	}
	return reach, errors.Join(mistakes...)
}

// WithAuthorities returns the known authorities together with those in the file. A nil known stands
// for those of the system; without a file, WithAuthorities returns known itself.
func WithAuthorities(known *x509.CertPool, file string) (*x509.CertPool, error) {
	if file == "" {
		return known, nil
	}
	text, err := settings.ReadFile(file, 1<<20)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if known != nil {
		roots = known.Clone()
	} else if system, err := x509.SystemCertPool(); err == nil {
		roots = system
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM: put the certificate of the authority into it", file)
	}
	return roots, nil
}

// localClient is the client of any program on this computer in development. mcp-remote and the MCP
// Inspector redirect to /oauth/callback, Claude Code to /callback, and VS Code to the root.
var localClient = oauth.HostedClient{
	Path: "local", Name: "A program on this computer, in development",
	RedirectURIs: []string{
		"http://127.0.0.1/", "http://localhost/", "http://127.0.0.1/callback", "http://localhost/callback",
		"http://127.0.0.1/oauth/callback", "http://localhost/oauth/callback",
	},
}

// DoctorDocument is the path, below the issuer, of the document of DoctorClient.
const DoctorDocument = client.HostedPath + doctorPath

const doctorPath = "doctor"

// DoctorClient is the client with which doctor checks a whole login.
var DoctorClient = oauth.HostedClient{
	Path: doctorPath, Name: "Pasteport doctor, which checks this server",
	RedirectURIs: []string{"http://127.0.0.1/callback", "http://localhost/callback"},
}

// LocalClientID returns the client_id of the programs on this computer, in development.
func (c Config) LocalClientID() string { return c.Issuer + client.HostedPath + localClient.Path }

// EgressSettings names the settings that decide which metadata documents are fetched, and how.
var EgressSettings = []string{
	"issuer", "dev", "allowed-private-schemes", "client-id-ports",
	"allow-documents-without-client-id", "client-documents", "metadata-proxy",
}

// PinnedClients returns the documents in the folder client-documents.
func (c Config) PinnedClients(ctx context.Context) ([]bootstrap.PinnedClient, error) {
	probe, err := c.NewClientProbe()
	if err != nil || c.ClientDocuments == "" {
		return nil, err
	}
	pinned, err := probe.Pinned(ctx, c.ClientDocuments)
	return pinned, mistaken("client-documents", "", err)
}

// NewClientProbe returns a probe of clients' metadata documents. It needs only the EgressSettings.
func (c Config) NewClientProbe() (*bootstrap.ClientProbe, error) {
	config := c.authorization()
	config.AllowLoopbackClients = c.Development
	return bootstrap.NewClientProbe(config, bootstrap.WithMetadata(c.Metadata),
		bootstrap.WithRootCAs(c.RootCAs))
}
