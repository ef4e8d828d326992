package application

import (
	"cmp"
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Exchange redeems an authorization code for tokens. It checks the code before the change, where a
// replay ends the grant, and again in the change, where the loser of a race is only refused.
func (s Tokens) Exchange(ctx context.Context, by client.Credentials, p oauth.Parameters) (*oauth.Tokens, error) {
	secret, err := s.readSecret(ctx, attempt.Exchange, by, p, "code", oauth.CodeSecret)
	if err != nil {
		return nil, err
	}
	request := oauth.Redemption{
		Code:        secret,
		Verifier:    p.Get("code_verifier"),
		RedirectURI: p.Get("redirect_uri"),
		Resources:   p.All("resource"),
		Scope:       p.Get("scope"),
		Signed:      by.Assertion != "",
	}
	if request.Verifier == "" {
		return nil, oauth.Refuse(oauth.InvalidRequest, "D12", "the code_verifier is missing")
	}
	if request.Fresh, err = s.freshEntropy(); err != nil {
		return nil, err
	}
	code, err := s.store.Code(ctx, secret.Grant())
	if err != nil {
		return nil, s.limitUnknown(ctx, err)
	}
	s.traceAs(ctx, code.ID(), code.Client())
	if request.Client, err = s.identify(ctx, code, by); err != nil {
		return nil, err
	}
	now := s.now()
	refusal := code.MayRedeem(request, s.Settings, now)
	switch {
	case errors.Is(refusal, oauth.ErrRetried):
		s.auditOf(ctx, "code_retried", code.Client(), "grant", code.ID())
	case errors.Is(refusal, oauth.ErrReplayed):
		_, err = s.endAuthorization(ctx, code.ID(), oauth.EndedByCodeReplay)
	}
	if refusal != nil {
		return nil, cmp.Or(err, refusal)
	}
	var tokens *oauth.Tokens
	of := oauth.Selection{Code: code.ID(), Known: &oauth.Authorizations{Codes: []*oauth.AuthorizationCode{code}}}
	err = s.store.Change(ctx, of, func(found *oauth.Authorizations) (err error) {
		if len(found.Codes) == 0 {
			return oauth.ErrNotFound
		}
		var grant *oauth.AccessGrant
		grant, tokens, err = found.Codes[0].Redeem(request, s.Settings, now)
		found.Grants = append(found.Grants, grant) // after an error the store keeps nothing
		return err
	})
	if err != nil {
		return nil, insteadOfNotFound(err, oauth.RefuseUnknownGrant())
	}
	s.auditOf(ctx, "code_redeemed", code.Client(), "grant", code.ID())
	return tokens, nil
}
