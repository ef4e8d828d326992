package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/program"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
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
		wrong = errors.Join(wrong, oauth.NewMistake("Credential", "is %q: set HostTokenInUse in the oauth.Config, so "+
			"that access tokens can open the host token", config.Credential))
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
	protection := gateway.Options{Options: m.protection(), Sessions: m.authz.server.Settings.Keys}
	protection.PassedHeaders = config.Headers
	if config.BindTools {
		m.authz.server.Tokens.BindTools()
		protection.RecordTools = m.authz.server.Tokens.RecordTools
	}
	target, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	protection.Parameter = func(name string) bool {
		return slices.Contains(config.Parameters, name) && !target.Query().Has(name) // the upstream's own URL prevails
	}
	if config.Credential == CredentialHostToken {
		protection.HostTokens = m.authz.server.Tokens
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

// newStarts limits how often a person starts a program, because a start costs much more than the
// request for it: in a minute, max(30, 3*maxProcesses) times.
func newStarts(maxProcesses int) func(person string) bool {
	starts, perMinute := limits.NewRates(), max(30, 3*maxProcesses)
	return func(person string) bool {
		return starts.Take(time.Now(), quota.Rate{Of: person, Events: 1, PerMinute: perMinute}) == 0
	}
}

// UpstreamState is the result of a check of an upstream. Its State is one word, its Cause and
// Remedy are for operators.
type UpstreamState = check.Result

// UpstreamDown is the State of an upstream that does not answer, which may pass by itself.
const UpstreamDown = check.Down

// UpstreamUnknown is the state of an upstream before its first check.
var UpstreamUnknown = check.Unknown

// checkedUpstream is a gateway.Upstream that knows whether it works.
type checkedUpstream interface {
	gateway.Upstream
	Health() error // as in MCPServer.Health
	Failed() <-chan struct{}
	Check(ctx context.Context) check.Result
}

// mount protects the upstream, and makes its state known to the consent page.
func (m *MCPServer) mount(to checkedUpstream, protection gateway.Options) {
	m.mounted, m.upstream = gateway.New(to, protection), to
	m.authz.upstreams.Store(protection.Resource.String(), m)
}

// CheckUpstream asks the upstream of a gateway whether it works, and returns and keeps the result.
// Until the next check, the consent page warns of an upstream that does not work. Call it from time
// to time, with a ctx that limits its time; the program "pasteport gateway" does so every minute.
// It does nothing for other servers.
func (m *MCPServer) CheckUpstream(ctx context.Context) UpstreamState {
	if m.upstream == nil {
		return check.Unknown
	}
	found := m.upstream.Check(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) { // a caller that gives up leaves the result unknown
		m.state.Store(&found)
	}
	return m.UpstreamState()
}

// UpstreamState returns what CheckUpstream has found last.
func (m *MCPServer) UpstreamState() UpstreamState {
	if last := m.state.Load(); last != nil {
		return *last
	}
	return check.Unknown
}

// UpstreamFailed returns a channel that receives after a failed call to the upstream of a gateway,
// when CheckUpstream can find out more. It is nil for other servers and for programs.
func (m *MCPServer) UpstreamFailed() <-chan struct{} {
	if m.upstream == nil {
		return nil
	}
	return m.upstream.Failed()
}

// upstreamCondition is what the consent page says about the upstream of a resource.
func (a *OAuthServer) upstreamCondition(resource oauth.Resource) pages.UpstreamCondition {
	found, isKnown := a.upstreams.Load(resource.String())
	if !isKnown {
		return pages.UpstreamWorks
	}
	switch found.(*MCPServer).UpstreamState().State {
	case check.Down:
		return pages.UpstreamDown
	case check.Misconfigured:
		return pages.UpstreamMisconfigured
	}
	return pages.UpstreamWorks
}
