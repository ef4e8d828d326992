package application

import (
	"context"
	"fmt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// endByLostKey ends the grant whose host token nobody can open any more (J6). While another replica seals with a secret that has not
// reached this one, it may well be opened there, and nothing has ended.
func (s *Server) endByLostKey(ctx context.Context, token oauth.Secret, end func(context.Context, oauth.Secret, oauth.EndReason) error) error {
	if err := s.openedElsewhere(ctx); err != nil {
		return err
	}
	return end(ctx, token, oauth.EndedByLostKey)
}

// openedElsewhere is an outage when another replica may open what this one cannot.
func (s *Server) openedElsewhere(ctx context.Context) error {
	if err := s.AgreeOnSecret(ctx); err != nil {
		return fmt.Errorf("opening a host token: %w: %w", oauth.ErrUnavailable, err)
	}
	return nil
}

// AgreeOnSecret tells the machines that share the store which server secret this one seals with. oauth.ErrOtherSecret when they know a
// newer one.
func (s *Server) AgreeOnSecret(ctx context.Context) error {
	if s.ports.Witness == nil {
		return nil
	}
	prints, err := s.settings.Keys.SecretFingerprints()
	if err != nil {
		return err
	}
	return s.ports.Witness.Agree(ctx, prints)
}
