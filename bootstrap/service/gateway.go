package service

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// GatewayConfig lists the MCP servers behind a gateway, and the options that they share.
type GatewayConfig struct {
	bootstrap.UpstreamOptions
	Upstreams  []UpstreamAddress
	ToolScopes []ToolScope
	Connect    ConnectConfig
	Policy     PolicyConfig
}

// UpstreamAddress is the URL or the program of an upstream, and the path of the issuer under which
// clients reach it.
type UpstreamAddress struct {
	Path    string
	URL     string
	Program bootstrap.Program

	mistake error // in the command line of the program; not an error of the setting, which repeats its value
}

// ToolScope lists the scopes that calls of matching tools need.
type ToolScope struct {
	Pattern string
	Scopes  []string
}

func (c *Config) gateway() settings.Group {
	g := &c.Gateway
	return settings.Group{Title: "Gateway", Settings: append([]*settings.Setting{
		settings.List("upstream", &g.Upstreams, upstreamItem(),
			"MCP servers behind \"pasteport gateway\". Each is \"URL\", \"stdio: command\", \"/path = URL\" or "+
				"\"/path = stdio: command\", or a mapping with path, url, command, args, dir and env. Each server "+
				"is a separate resource").OrSingle().
			Example("http://127.0.0.1:9000/mcp", "/files = http://127.0.0.1:9001/mcp"),
		settings.Text("upstream-host", &g.Host,
			"Host header for the upstreams and for \"verifier: upstream\", if they refuse the host in their URL").
			DefaultText("the host of each upstream").Example("localhost:9000"),
		settings.Choice("credential", &g.Credential, bootstrap.Credentials(),
			"credential for the upstreams: the pasted token of the person, one shared secret, or none"),
		settings.List("present", &g.Present, presentItem, "headers or query parameters in which the credential is "+
			"sent, each as \"Header: template\" or \"?parameter=template\" with {token} in the template").
			DefaultText(secret.DefaultEntry).Example("X-Api-Key: {token}").OrSingle(),
		settings.List("fields", (*[]bootstrap.HostField)(&c.HostFields), fieldItem(),
			"what people enter instead of one token, each as a mapping with name, label, help, secret, pattern, "+
				"default and required").DefaultText("one token").
			Example(`{"name": "user", "label": "Your user name"}`, `{"name": "token"}`),
		settings.Secret("upstream-secret", &g.Secret, "secret that \"credential: static\" sends"),
		settings.Secret("signing-secret", &g.SigningSecret,
			"key for signing the headers that identify the caller, for \"credential: static\"; 32 bytes or more"),
		settings.Duration("upstream-timeout", &g.Patience,
			"time limit for the start of an upstream's response, and of a program, "+
				settings.FormatDuration(upstream.LeastPatience)+" to "+settings.FormatDuration(upstream.MostPatience)),
		settings.List("tool-scopes", &g.ToolScopes, toolScopeItem,
			"scopes that tools require, each as \"pattern = scope…\"; other tools require default-scopes").
			Example("delete_* = articles:write"),
		settings.Texts("forward-headers", &g.Headers,
			"client headers that are forwarded to the upstreams, besides those of MCP").
			Example("X-Toolsets"),
		settings.Texts("forward-parameters", &g.Parameters, "query parameters that clients may add to the address of "+
			"the MCP server, and that are forwarded to the upstreams; any other is refused").Example("read_only"),
		settings.Switch("bind-tools", &g.BindTools, "let clients see and call only the tools of their first list, "+
			"while these are as they were then; a person sees what has changed and approves again"),
	}, slices.Concat(g.Policy.settings(), g.Connect.settings(), g.programSettings())...)}
}

// presentItem only keeps the text, because the errors of its parser name the number of the entry
// and the remedy.
var presentItem = settings.Verbatim(`texts in quotes such as 'X-Api-Key: {token}'`)

var toolScopeItem = settings.Item[ToolScope]{
	Parse: func(line string) (ToolScope, error) {
		pattern, names, found := strings.Cut(line, " = ")
		scopes := strings.Fields(names)
		if !found || !isPattern(pattern) || !isPattern(strings.ToLower(pattern)) || len(scopes) == 0 {
			return ToolScope{}, errors.New("it has no pattern or no scope")
		}
		return ToolScope{strings.TrimSpace(pattern), scopes}, nil
	},
	Format:   func(t ToolScope) string { return t.Pattern + " = " + strings.Join(t.Scopes, " ") },
	Expected: "scopes such as \"delete_* = articles:write\"",
}

func isPattern(text string) bool {
	_, err := path.Match(text, "")
	return err == nil
}

// DemoName is the default name of the demo site on its pages, under any issuer.
const DemoName = "Demo site"

// resources adds a protected resource under the issuer for every upstream.
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

// check reports every mistake at once; config already contains the resources of the gateway.
func (g GatewayConfig) check(config oauth.Config, verifier string) error {
	if len(g.Upstreams) == 0 {
		return g.checkIdle(config)
	}
	config = config.WithDefaults()
	mistakes := []error{g.checkUpstreams(config), g.checkPrograms(verifier), g.checkKeys(verifier),
		g.checkUnkeyed(verifier), g.checkToolScopes(config)}
	if g.hasURL() {
		mistakes = append(mistakes, oauth.Within("Gateway", g.UpstreamOptions.Check(config.HostFields)))
	}
	return errors.Join(mistakes...)
}

// checkIdle reports fields that have no effect without an upstream.
func (g GatewayConfig) checkIdle(config oauth.Config) error {
	return unused("%s is not: leave it out, or name the MCP server behind the gateway",
		oauth.Field("Gateway.Upstreams"),
		append(g.Connect.fields(), []configured{
			{"Gateway.Host", g.Host != ""}, {"Gateway.Present", len(g.Present) > 0},
			{"Gateway.Headers", len(g.Headers) > 0}, {"Gateway.Parameters", len(g.Parameters) > 0},
			{"Gateway.Secret", g.Secret != ""},
			{"Gateway.SigningSecret", g.SigningSecret != ""}, {"Gateway.ToolScopes", len(g.ToolScopes) > 0},
			{"HostFields", len(config.HostFields) > 0}, {toolRules, len(g.Policy.Tools) > 0},
			{promptRules, len(g.Policy.Prompts) > 0}, {resourceRules, len(g.Policy.Resources) > 0},
		}...)...)
}

// fields are those that have an effect only on upstreams with a URL.
func (c ConnectConfig) fields() []configured {
	return []configured{
		{"Gateway.Connect.CAFile", c.CAFile != ""}, {"Gateway.Connect.CertFile", c.CertFile != ""},
		{"Gateway.Connect.KeyFile", c.KeyFile != ""}, {"Gateway.Connect.Proxy", c.Proxy != nil},
	}
}

// configured is a field, and whether it is set.
type configured struct {
	name oauth.Field
	set  bool
}

// unused reports the fields that are set. The reason, which names the cause, is why they have no
// effect.
func unused(reason string, cause any, fields ...configured) error {
	var mistakes []error
	for _, field := range fields {
		if field.set {
			mistakes = append(mistakes, oauth.NewMistake("%s is set, but "+reason, field.name, cause))
		}
	}
	return errors.Join(mistakes...)
}

func (g GatewayConfig) checkUpstreams(config oauth.Config) error {
	var mistakes []error
	for i, u := range g.Upstreams {
		wrong := []error{}
		if u.IsProgram() {
			wrong = g.checkProgram(u, config.HostFields)
		} else if err := bootstrap.CheckUpstreamURL(u.URL); err != nil {
			wrong = append(wrong, err)
		}
		for _, err := range wrong {
			if len(g.Upstreams) > 1 {
				err = fmt.Errorf("number %d: %w", i+1, err)
			}
			mistakes = append(mistakes, oauth.NewMistake("%s: %s", oauth.Field("Gateway.Upstreams"), err))
		}
		if u.Path == "" && i > 0 {
			mistakes = append(mistakes,
				oauth.NewMistake("%s: number %d has no path: write it as \"/path = URL\", because only the first one "+
					"may have no path", oauth.Field("Gateway.Upstreams"), i+1))
		}
	}
	return errors.Join(mistakes...)
}

// checkKeys makes sure that each key is sent only to the upstream that issued it. Only the
// upstreams can verify that.
func (g GatewayConfig) checkKeys(verifier string) error {
	if len(g.Upstreams) == 1 || g.hasProgram() || g.Credential != bootstrap.CredentialHostToken ||
		verifier == VerifierUpstream {
		return nil
	}
	return oauth.NewMistake("%s is %q for several upstreams, but %s %q cannot tell which upstream a key belongs to: "+
		"choose %s %q, or one gateway per upstream",
		oauth.Field("Gateway.Credential"), g.Credential, oauth.Field("Verification.Verifier"), verifier,
		oauth.Field("Verification.Verifier"),
		VerifierUpstream)
}

// checkUnkeyed refuses a verifier that cannot work: a server that needs no key accepts any.
func (g GatewayConfig) checkUnkeyed(verifier string) error {
	if g.Credential != bootstrap.CredentialNone || verifier != VerifierUpstream || g.hasProgram() {
		return nil
	}
	return oauth.NewMistake("%s is %q, but %s is %q, and a server that needs no key accepts any token: choose %s %q "+
		"or %q, or %s %q, %q or %q",
		oauth.Field("Gateway.Credential"), g.Credential, oauth.Field("Verification.Verifier"), VerifierUpstream,
		oauth.Field("Gateway.Credential"),
		bootstrap.CredentialHostToken, bootstrap.CredentialStatic,
		oauth.Field("Verification.Verifier"), VerifierFile, VerifierHTTP, VerifierIntrospection)
}

func (g GatewayConfig) checkToolScopes(config oauth.Config) error {
	var mistakes []error
	for _, rule := range g.ToolScopes {
		for _, name := range rule.Scopes {
			if !slices.ContainsFunc(config.Scopes, func(s oauth.Scope) bool { return s.Name == name }) {
				mistakes = append(mistakes,
					oauth.NewMistake("%s has %q, which is not in scopes: add it to %s",
						oauth.Field("Gateway.ToolScopes"), name, oauth.Field("Scopes")))
			}
		}
	}
	return errors.Join(mistakes...)
}

// toolScopes returns the scopes that a call of a tool requires: those of every matching pattern;
// none for the defaults.
func (g GatewayConfig) toolScopes(tool string) (needed oauth.Scopes) {
	for _, rule := range g.ToolScopes {
		if matches(rule.Pattern, tool) {
			needed = needed.With(rule.Scopes...)
		}
	}
	return needed
}

// matches reports whether the pattern matches the name of the tool in any case, which the upstream
// may ignore.
func matches(pattern, tool string) bool {
	return globs(strings.ToLower(pattern), strings.ToLower(tool))
}

// globs is path.Match, but a slash has no special meaning, because tool names contain slashes.
func globs(pattern, tool string) bool {
	letters := strings.NewReplacer("/", "\x00")
	matched, err := path.Match(letters.Replace(pattern), letters.Replace(tool))
	return matched && err == nil
}
