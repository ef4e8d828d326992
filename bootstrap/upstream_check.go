package bootstrap

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/domain/oauth"
)

// UpstreamState is the result of a check of an upstream. Its State is one word, its Cause and
// Remedy are for operators.
type UpstreamState = check.Result

// judge asks an upstream whether it works. It gets the last result.
type judge = func(ctx context.Context, last check.Result) check.Result

// upstreamState is the upstream of a gateway with the result of its last check.
type upstreamState struct {
	health func() error // of calls
	failed <-chan struct{}
	judge  judge
	last   atomic.Pointer[check.Result]
}

func newUpstreamState(health func() error, failed <-chan struct{}, judge judge) *upstreamState {
	u, unknown := &upstreamState{health: health, failed: failed, judge: judge}, check.Unknown
	u.last.Store(&unknown)
	return u
}

// alwaysHealthy and neverChecked are for servers that have no upstream.
func alwaysHealthy() error { return nil }

func neverChecked(_ context.Context, last check.Result) check.Result { return last }

// keepState makes the state of the upstream known to the consent page.
func (m *MCPServer) keepState(health func() error, failed <-chan struct{}, judge judge) {
	m.upstream = newUpstreamState(health, failed, judge)
	m.authz.upstreams.states.Store(m.protection().Resource.String(), m.upstream)
}

// judging returns a check whose results are those for the verifier of tokens if the upstream is
// one.
func (u Upstream) judging(asked judge) judge {
	if !u.VerifiesTokens {
		return asked
	}
	return func(ctx context.Context, last check.Result) check.Result { return asked(ctx, last).ForVerifier() }
}

// CheckUpstream asks the upstream of a gateway whether it works, with a key that no server has
// issued, and returns and keeps the result. Until the next check, the consent page warns of an
// upstream that does not work. Call it from time to time, with a ctx that limits its time; the
// program "pasteport gateway" does so every minute. It does nothing for other servers.
func (m *MCPServer) CheckUpstream(ctx context.Context) UpstreamState {
	found := m.upstream.judge(ctx, *m.upstream.last.Load())
	// else the caller has given up, so the result says nothing about the upstream
	if !errors.Is(ctx.Err(), context.Canceled) {
		m.upstream.last.Store(&found)
	}
	return m.UpstreamState()
}

// UpstreamState returns what CheckUpstream has found last, or that calls fail.
func (m *MCPServer) UpstreamState() UpstreamState { return m.upstream.current() }

// UpstreamFailed returns a channel that receives after a failed call to the upstream of a gateway,
// when CheckUpstream can find out more. It is nil for other servers and for programs.
func (m *MCPServer) UpstreamFailed() <-chan struct{} { return m.upstream.failed }

// current returns the result of the last check unless a later call contradicts it.
func (u *upstreamState) current() check.Result {
	last := *u.last.Load()
	if err := u.health(); err != nil && last.MayWork() {
		return check.FailedCalls(err)
	}
	return last
}

// upstreamStates are those of all gateways of an OAuthServer.
type upstreamStates struct{ states sync.Map } // of *upstreamState by resource

// condition is what the consent page says about the upstream of a resource.
func (u *upstreamStates) condition(resource oauth.Resource) pages.UpstreamCondition {
	found, known := u.states.Load(resource.String())
	if !known {
		return pages.UpstreamWorks
	}
	switch last := found.(*upstreamState).current(); {
	case last.IsOutage():
		return pages.UpstreamDown
	case last.IsMistake():
		return pages.UpstreamMisconfigured
	}
	return pages.UpstreamWorks
}
