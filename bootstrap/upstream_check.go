package bootstrap

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/domain/oauth"
)

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
	Health() error // of calls
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
	if !errors.Is(ctx.Err(), context.Canceled) { // else the caller has given up, and nothing is known
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
