package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/program"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// The credentials for an upstream, in GatewayConfig.Credential.
const (
	CredentialHostToken = gateway.CredentialHostToken
	CredentialStatic    = gateway.CredentialStatic
	CredentialNone      = gateway.CredentialNone
)

// Upstream is where the MCP server behind a gateway is: a URL, or a program in any language.
type Upstream = gateway.Address

// GatewayConfig describes how a gateway calls its upstream.
type GatewayConfig = gateway.Config

// HostField is a value that people enter, for oauth.Config.HostFields.
type HostField = credential.Field

// UpstreamRequest is a request of the gateway to its upstream, for metrics.
type UpstreamRequest = gateway.Request

// NewGateway protects an MCP server elsewhere. It needs WithOAuth, and reports all mistakes of the
// config in one error. The HostFields, clock and default logger are those of the OAuth server.
func NewGateway(to Upstream, config GatewayConfig, options ...MCPOption) (*MCPServer, error) {
	m := newMCPServer(options)
	if m.authz == nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", m.errNoOAuth("NewGateway"))
	}
	config = config.WithDefaults()
	config.HostFields, config.Now = m.authz.config.HostFields, m.authz.config.Now
	config.Logger = cmp.Or(config.Logger, m.authz.config.Logger)
	wrong := config.Check(to)
	if config.Credential == CredentialHostToken && !m.authz.config.HostTokenInUse {
		wrong = oauth.NewMistake("Credential", "is %q: set HostTokenInUse in the oauth.Config, so that access tokens "+
			"can open the host token", config.Credential)
	}
	err := errors.Join(append(m.wrongOptions, wrong)...)
	if err == nil {
		err = m.openGateway(to, config)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	return m, nil
}

func (m *MCPServer) openGateway(to Upstream, config GatewayConfig) error {
	protection := gateway.Options{Options: m.protection(), Sessions: m.authz.server.Settings().Keys}
	protection.PassedHeaders = config.Headers
	if config.BindTools {
		m.authz.server.BindTools()
		protection.RecordTools = m.authz.server.RecordTools
	}
	own, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	protection.Parameter = func(name string) bool {
		return slices.Contains(config.Parameters, name) && !own.Query().Has(name)
	}
	if config.Credential == CredentialHostToken {
		protection.HostTokens = m.authz.server
	}
	if to.IsProgram() {
		protection.Sessions = m.sessions(&protection.Options)
		mayStart := newStarts(program.ProcessesPerPerson(config.MaxProcesses))
		m.mount(program.New(to, config, protection, mayStart), protection)
		return nil
	}
	if presentation := config.Presentation(); len(config.Present) > 0 && protection.HostTokens != nil {
		protection.TakeHostToken = presentation.Take
		protection.PassedHeaders = slices.Concat(config.Headers, presentation.Headers())
	}
	proxy, err := upstream.New(to.URL, config, protection)
	if err != nil {
		return err
	}
	m.mount(proxy, protection)
	return nil
}

// newStarts limits how often a person starts a program, because each start costs much more than the
// request for it: thirty times in a minute, or three times for each process that they may have.
func newStarts(maxProcesses int) func(person string) bool {
	starts, perMinute := limits.NewRates(), max(30, 3*maxProcesses)
	return func(person string) bool {
		return starts.Take(time.Now(), oauth.Rate{Of: person, Events: 1, PerMinute: perMinute}) == 0
	}
}
