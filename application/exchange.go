package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Exchange redeems an authorization code for tokens.
func (s *Server) Exchange(ctx context.Context, client oauth.Credentials, p oauth.Parameters) (*oauth.Tokens, error) {
	connection.From(ctx).Record(connection.Exchange)
	label, err := s.admitClient(client)
	connection.From(ctx).Identify("", label)
	if err != nil {
		return nil, err
	}
	code, err := s.readSecret(ctx, p, "code", oauth.CodeSecret)
	if err != nil {
		return nil, err
	}
	if p.Get("code_verifier") == "" {
		return nil, oauth.Refuse(oauth.InvalidRequest, "D12", "the code_verifier is missing")
	}
	fresh, err := s.freshEntropy()
	if err != nil {
		return nil, err
	}
	return s.redeem(ctx, client, oauth.Redemption{
		Code:        code,
		Verifier:    p.Get("code_verifier"),
		RedirectURI: p.Get("redirect_uri"),
		Resources:   p.All("resource"),
		Scope:       p.Get("scope"),
		Fresh:       fresh,
	})
}

// redeem checks the code before the transaction and in it. A request that loses a race for the code
// does not end the winner's grant.
func (s *Server) redeem(ctx context.Context, client oauth.Credentials, by oauth.Redemption) (*oauth.Tokens, error) {
	code, err := s.codeOf(ctx, by.Code)
	if err != nil {
		return nil, err
	}
	connection.From(ctx).Identify(code.ID(), s.settings.LabelOf(code.Client(), code.ClientName()))
	if by.Client, err = s.identify(ctx, code, client); err != nil {
		return nil, err
	}
	by.Signed = client.Assertion != ""
	now := s.now()
	if err := code.MayRedeem(by, s.settings, now); err != nil {
		return nil, s.refuseCode(ctx, code, err)
	}
	var tokens *oauth.Tokens
	of := oauth.Selection{Code: code.ID(), Known: &oauth.Authorizations{Codes: []*oauth.AuthorizationCode{code}}}
	err = s.store.Change(ctx, of, func(found *oauth.Authorizations) (err error) {
		if len(found.Codes) == 0 {
			return oauth.ErrNotFound
		}
		var grant *oauth.AccessGrant
		grant, tokens, err = found.Codes[0].Redeem(by, s.settings, now)
		found.Grants = append(found.Grants, grant)
		return err
	})
	if err != nil {
		return nil, unknownGrant(err)
	}
	s.audit(ctx, "code_redeemed", "grant", code.ID(), "client", s.loggedClient(code.Client(), code.ClientName()))
	return tokens, nil
}

// refuseCode ends the grant of a replayed code.
func (s *Server) refuseCode(ctx context.Context, code *oauth.AuthorizationCode, refusal error) error {
	switch {
	case errors.Is(refusal, oauth.ErrRetried):
		s.audit(ctx, "code_retried", "grant", code.ID(), "client", s.loggedClient(code.Client(), code.ClientName()))
	case errors.Is(refusal, oauth.ErrReplayed):
		if _, err := s.endAuthorization(ctx, code, oauth.EndedByCodeReplay); err != nil {
			return err
		}
	}
	return refusal
}
