package application

import (
	"context"
	"fmt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// endByLostKey ends a grant whose host token cannot be unsealed any more and returns refusal (J6). It fails while another replica has a newer server
// secret, which may unseal it.
func (s *Server) endByLostKey(ctx context.Context, token oauth.Digest, refusal error) error {
	if err := s.checkSecretAgreement(ctx); err != nil {
		return err
	}
	return s.endAndRefuse(ctx, token, oauth.EndedByLostKey, refusal)
}

// checkSecretAgreement returns ErrUnavailable while another replica has a newer server secret.
func (s *Server) checkSecretAgreement(ctx context.Context) error {
	if err := s.AgreeOnSecret(ctx); err != nil {
		return fmt.Errorf("unsealing a host token: %w: %w", oauth.ErrUnavailable, err)
	}
	return nil
}

// AgreeOnSecret stores the fingerprint of the current server secret for the replicas that share the store. It returns oauth.ErrOtherSecret when they
// have a newer one.
func (s *Server) AgreeOnSecret(ctx context.Context) error {
	if s.ports.Witness == nil {
		return nil
	}
	prints, err := s.settings.Keys.SecretFingerprints()
	if err != nil {
		return err
	}
	return s.ports.Witness.VerifySecret(ctx, prints)
}
