// Package application holds the use cases of the authorization server: one file is one thing that somebody can do.
package application

import (
	"context"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Ports are what the use cases need of the outside world.
type Ports struct {
	Store      oauth.Store
	Clients    oauth.ClientDirectory
	Keys       oauth.KeyDirectory
	Assertions oauth.AssertionReader
	Verifier   oauth.BearerVerifier
	Verifiers  map[oauth.Resource]oauth.BearerVerifier // of the resources that have one of their own (U3)
	Guesses    oauth.GuessLimit
	Failures   oauth.FailureLimit  // counts unknown codes and refresh tokens
	Witness    oauth.SecretWitness // nil when no other machine shares the store
	Trace      trace.Log           // nil: connections are not traced
	Journal    trace.Journal       // in front of Trace; nil like it
	Decided    func(event string)  // counts decisions; nil counts none
	Limited    oauth.LimitObserver // nil counts none
	Now        func() time.Time
	Random     io.Reader
	Logger     *slog.Logger
}

// Server offers every use case as one method.
type Server struct {
	settings *oauth.Settings
	ports    Ports
	judge    judge
	judges   map[oauth.Resource]judge
	ended    func(grant string)
	rechecks singleflight.Group

	afterRefusals singleflight.Group
	verified      verifications
}

// NewServer expects complete ports.
func NewServer(settings *oauth.Settings, ports Ports) *Server {
	s := &Server{settings: settings, ports: ports, judge: newJudge(ports.Verifier, settings.Limits), judges: map[oauth.Resource]judge{}, ended: func(string) {}}
	for resource, verifier := range ports.Verifiers {
		s.judges[resource] = newJudge(verifier, settings.Limits)
	}
	return s
}

// OnGrantEnded adds somebody who is told, after the fact is stored, that a grant ended; call it before serving.
func (s *Server) OnGrantEnded(told func(grant string)) {
	others := s.ended
	s.ended = func(grant string) {
		others(grant)
		told(grant)
	}
}

// Settings returns what the server was configured with.
func (s *Server) Settings() *oauth.Settings { return s.settings }

// now returns this use case's one instant, as precise as a store keeps it.
func (s *Server) now() time.Time { return s.ports.Now().UTC().Truncate(time.Millisecond) }

// secrets draws one fresh secret per kind, outside any transaction because closures may run more than once.
func (s *Server) secrets(kinds ...oauth.SecretKind) ([]oauth.Secret, error) {
	drawn := make([]oauth.Secret, 0, len(kinds))
	for _, kind := range kinds {
		secret, err := oauth.NewSecret(kind, s.ports.Random)
		if err != nil {
			return nil, err
		}
		drawn = append(drawn, secret)
	}
	return drawn, nil
}

// end ends the grant that the secret belongs to and tells whoever holds streams open for it.
func (s *Server) end(ctx context.Context, secret oauth.Digest, reason oauth.EndReason) error {
	var grant string
	var alive bool
	now := s.now()
	err := s.ports.Store.UpdateGrant(ctx, secret, func(g *oauth.AccessGrant) error {
		grant, alive = g.ID(), g.End(reason, now)
		return nil
	})
	if err != nil || !alive {
		return err
	}
	s.announceEnd(ctx, grant, reason)
	return nil
}

func (s *Server) announceEnd(ctx context.Context, grant string, reason oauth.EndReason) {
	s.audit(ctx, "grant_ended", "grant", grant, "reason", string(reason))
	if s.ports.Journal != nil {
		s.ports.Journal.Note(trace.Step{
			At: s.now(), Kind: trace.Ended, Outcome: trace.Passed, Attempt: grant, Request: trace.From(ctx).Request(), Reason: string(reason),
		})
	}
	s.ended(grant)
}

// Events returns the names of all decisions, so that whoever counts them knows those that have not happened yet.
func Events() []string {
	return []string{"cimd_rejected", "code_redeemed", "consent_denied", "grant_created", "grant_ended", "host_token_rejected", "refreshed"}
}

// audit writes one line per decision; it never receives a secret (H8).
func (s *Server) audit(ctx context.Context, event string, attributes ...any) {
	s.ports.Logger.InfoContext(ctx, event, attributes...)
	if s.ports.Decided != nil {
		s.ports.Decided(event)
	}
}
