// Package application holds the use cases of the authorization server. Server has a method for
// each: RequestAuthorization and Approve lead to a code, Exchange and Refresh issue tokens,
// Authenticate checks them, Revoke and EndGrants end grants. Ports are the interfaces it needs: the
// store, the clients' documents, the site's verifier and the limits.
package application

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Ports are the dependencies of the use cases.
type Ports struct {
	Store         oauth.Store
	Clients       oauth.ClientDirectory
	Keys          oauth.KeyDirectory
	Assertions    oauth.AssertionReader
	Verifier      oauth.BearerVerifier
	Verifiers     map[oauth.Resource]oauth.BearerVerifier // of the resources with a separate verifier
	Guesses       oauth.GuessLimit
	Failures      oauth.FailureLimit      // counts unknown codes and refresh tokens
	Registrations oauth.RegistrationLimit // of clients that register themselves
	Witness       oauth.SecretVerifier    // nil when the store keeps no fingerprint
	Trace         trace.Log               // nil: connections are not traced
	Journal       trace.Journal           // buffers the writes to Trace; nil without it
	OnDecision    func(event string)      // called with each audit event; may be nil
	Limited       oauth.LimitObserver     // may be nil
	Now           func() time.Time
	Random        io.Reader
	Logger        *slog.Logger
}

// Server runs the use cases. It is safe for concurrent use.
type Server struct {
	settings      *oauth.Settings
	ports         Ports
	guard         verifierGuard
	ownGuards     map[oauth.Resource]verifierGuard
	onGrantEnded  func(grant string)
	rechecks      singleflight.Group
	afterRefusals singleflight.Group
	verified      verifications
	uses          lastUses
	outdated      atomic.Bool // another replica has a newer server secret

	agreementAsked atomic.Int64 // when a token made this process ask about the server secret, in nanoseconds
}

// NewServer returns a server. Ports that are not documented as optional must be set.
func NewServer(settings *oauth.Settings, ports Ports) *Server {
	s := &Server{
		settings:     settings,
		ports:        ports,
		ownGuards:    map[oauth.Resource]verifierGuard{},
		onGrantEnded: func(string) {},
	}
	s.guard = newVerifierGuard(ports.Verifier, settings, ports.Logger)
	for resource, verifier := range ports.Verifiers {
		s.ownGuards[resource] = newVerifierGuard(verifier, settings, ports.Logger)
	}
	return s
}

// OnGrantEnded adds a function that is called after the end of a grant is stored. Call it before
// serving.
func (s *Server) OnGrantEnded(call func(grant string)) {
	others := s.onGrantEnded
	s.onGrantEnded = func(grant string) {
		others(grant)
		call(grant)
	}
}

func (s *Server) Settings() *oauth.Settings { return s.settings }

// now returns the time in milliseconds, the precision of a store.
func (s *Server) now() time.Time { return s.ports.Now().UTC().Truncate(time.Millisecond) }

// freshEntropy draws what new tokens are made of, before the change, whose
// closure may run more than once.
func (s *Server) freshEntropy() (fresh oauth.FreshEntropy, err error) {
	if fresh.Access, err = oauth.NewEntropy(s.ports.Random); err != nil {
		return fresh, err
	}
	fresh.Refresh, err = oauth.NewEntropy(s.ports.Random)
	return fresh, err
}

// end ends a grant and closes its open streams.
func (s *Server) end(ctx context.Context, grant string, reason oauth.EndReason) error {
	var active bool
	now := s.now()
	err := s.ports.Store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) error {
		active = g.End(reason, now)
		return nil
	})
	if err != nil || !active {
		return err
	}
	s.announceEnd(ctx, grant, reason)
	return nil
}

func (s *Server) announceEnd(ctx context.Context, grant string, reason oauth.EndReason) {
	s.audit(ctx, "grant_ended", "grant", grant, "reason", string(reason))
	if s.ports.Journal != nil {
		s.ports.Journal.Note(trace.Step{
			At:      s.now(),
			Kind:    trace.Ended,
			Outcome: trace.Passed,
			Attempt: grant,
			Request: trace.From(ctx).Request(),
			Reason:  string(reason),
		})
	}
	s.onGrantEnded(grant)
}

// Events returns the names of all audit events, so that metrics can begin at zero.
func Events() []string {
	return []string{
		"callback_shown", "cimd_rejected", "cimd_unchecked", "client_registered", "code_redeemed", "code_retried",
		"consent_denied", "grant_created",
		"grant_ended", "host_token_rejected", "refreshed",
	}
}

// audit logs a decision. The attributes must not contain secrets.
func (s *Server) audit(ctx context.Context, event string, attributes ...any) {
	s.ports.Logger.InfoContext(ctx, event, attributes...)
	if s.ports.OnDecision != nil {
		s.ports.OnDecision(event)
	}
}
