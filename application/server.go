// Package application holds the use cases of the authorization server, in the four parts of Server.
// Ports are the interfaces that it needs: the store, the clients' documents, the site's verifier
// and the limits.
package application

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/application/cache"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// maxAnswers bounds the answers of verifiers that are kept.
const maxAnswers = 20_000

// Ports are the dependencies of the use cases.
type Ports struct {
	Store      oauth.Store
	Clients    client.Directory
	Keys       client.KeyDirectory
	Assertions client.AssertionReader
	Verifier   oauth.BearerVerifier                    // nil for a Server that verifies no token
	Verifiers  map[oauth.Resource]oauth.BearerVerifier // of the resources with a separate verifier
	Lanes      quota.Lanes
	Rates      quota.RateLimit      // of unknown tokens and registrations
	Witness    oauth.SecretVerifier // nil when the store keeps no fingerprint
	Journal    attempt.Journal      // of the steps of connections; may be nil
	OnDecision func(event string)   // called with each audit event; may be nil
	Limited    quota.Observer       // may be nil
	Now        func() time.Time
	Random     io.Reader
	Logger     *slog.Logger
}

// Server has the use cases in four parts. It is safe for concurrent use.
type Server struct {
	*core
	Authorize   Authorize
	Tokens      Tokens
	Connections Connections
	Operator    Operator
}

// Authorize has the use cases of the consent page, and registers clients.
type Authorize struct{ *core }

// Tokens issues, checks and revokes tokens.
type Tokens struct{ *core }

// Connections has the use cases of the page on which people see and end their grants.
type Connections struct{ *core }

// Operator has what the host and its operator do with grants, and the background work.
type Operator struct{ *core }

// core is what the use cases share.
type core struct {
	Settings     *oauth.Settings
	Clients      *client.Rules
	ports        Ports
	store        *cachingStore
	guard        verifierGuard                    // of Ports.Verifier
	ownGuards    map[oauth.Resource]verifierGuard // of Ports.Verifiers
	onGrantEnded func(grant string)
	rechecks     singleflight.Group         // by grant
	asking       singleflight.Group         // by the keys of answers
	answers      *cache.LRU[string, answer] // by directToken.id, and by the id in confirm
	ends         ends
	uses         lastUses
	flushing     *semaphore.Weighted // held by FlushUses
	bindsTools   atomic.Bool
	outdated     atomic.Bool // another replica has a newer server secret
}

// NewServer returns a server. Ports that are not documented as optional must be set.
func NewServer(settings *oauth.Settings, clients *client.Rules, ports Ports) *Server {
	s := &core{
		Settings:     settings,
		Clients:      clients,
		ports:        ports,
		store:        &cachingStore{ports.Store, time.Now, cache.New[string, *trustedGrant](maxTrusted)},
		ownGuards:    map[oauth.Resource]verifierGuard{},
		onGrantEnded: func(string) {},
		answers:      cache.New[string, answer](maxAnswers),
		flushing:     semaphore.NewWeighted(1),
	}
	if ports.Verifier != nil {
		s.guard = newVerifierGuard(ports.Verifier, settings, ports)
	}
	for resource, verifier := range ports.Verifiers {
		s.ownGuards[resource] = newVerifierGuard(verifier, settings, ports)
	}
	return &Server{s, Authorize{s}, Tokens{s}, Connections{s}, Operator{s}}
}

// OnGrantEnded adds a function to call after the end of a grant is stored. Call it before serving.
func (s Operator) OnGrantEnded(call func(grant string)) {
	others := s.onGrantEnded
	s.onGrantEnded = func(grant string) {
		others(grant)
		call(grant)
	}
}

// ForgetGrants makes the next call of each grant read it, because another process has ended it.
func (s Operator) ForgetGrants(grants []string) { s.store.forget(grants...) }

// now returns the time in milliseconds, the precision of a store.
func (s *core) now() time.Time { return s.ports.Now().UTC().Truncate(time.Millisecond) }

// freshEntropy draws the entropy of new tokens. Call it before the change, which may run twice.
func (s *core) freshEntropy() (fresh oauth.FreshEntropy, err error) {
	if fresh.Access, err = oauth.NewEntropy(s.ports.Random); err != nil {
		return fresh, err
	}
	fresh.Refresh, err = oauth.NewEntropy(s.ports.Random)
	return fresh, err
}

// announceEnd reports the end of a grant or code, and calls onGrantEnded, which closes its streams.
func (s *core) announceEnd(ctx context.Context, grant string, reason oauth.EndReason, detail string) {
	attributes := []any{"grant", grant, "reason", string(reason)}
	if detail != "" {
		attributes = append(attributes, "detail", detail)
	}
	s.audit(ctx, "grant_ended", attributes...)
	if s.ports.Journal != nil {
		s.ports.Journal.Note(attempt.Entry{Attempt: grant, Step: attempt.Step{
			Kind:    attempt.Ended,
			Outcome: attempt.Passed,
			Request: attempt.From(ctx).Request(),
			Reason:  strings.TrimSuffix(string(reason)+": "+detail, ": "), // detail may be ""
		}})
	}
	s.onGrantEnded(grant)
}

// Events returns the names of all audit events, so that metrics can begin at zero.
func Events() []string {
	return []string{
		"callback_shown", "cimd_rejected", "cimd_unchecked", "client_registered", "code_redeemed", "code_retried",
		"consent_denied", "grant_created", "grant_ended", "host_token_rejected", "host_token_replaced", "refreshed",
	}
}

// audit logs a decision. The attributes must not contain secrets.
func (s *core) audit(ctx context.Context, event string, attributes ...any) {
	s.ports.Logger.InfoContext(ctx, event, attributes...)
	if s.ports.OnDecision != nil {
		s.ports.OnDecision(event)
	}
}

// auditOf is audit with the client: by its publisher, or by its label if it registered itself.
func (s *core) auditOf(ctx context.Context, event string, of oauth.Client, attributes ...any) {
	label := s.Clients.PublisherOf(of.ID)
	if s.Clients.IsSelfRegistered(of.ID) {
		label = s.Clients.LabelOf(of.ID, of.Name)
	}
	s.audit(ctx, event, append(attributes, "client", label)...)
}

// traceAs sets the attempt and the client of the steps of a request.
func (s *core) traceAs(ctx context.Context, id string, of oauth.Client) {
	attempt.From(ctx).Identify(id, s.Clients.LabelOf(of.ID, of.Name))
}
