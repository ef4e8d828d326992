package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// OpenConsent reads the ticket of an answered form; it refuses with InvalidTicket or ExpiredTicket (B4).
func (s *Server) OpenConsent(sealed string) (*Consent, error) {
	ticket, err := oauth.OpenTicket(sealed, s.settings, s.now())
	if err != nil {
		return nil, err
	}
	return &Consent{ticket, sealed}, nil
}

// Approve returns the redirect with a code when the site knows the pasted token (B6-B13). Refusals that end the request are an
// *oauth.Refusal; after MissingHostToken, WrongHostToken, HostTokenNotVerifiable and TooManyGuesses the person can try again. TooManyGuesses
// may come as an *oauth.ProofDemand.
func (s *Server) Approve(ctx context.Context, consent *Consent, pasted Pasted) (oauth.Redirect, error) {
	request := consent.Ticket.Request()
	walk := trace.From(ctx)
	walk.Reach(trace.TokenJudged)
	walk.About(consent.Ticket.ID(), request.Client().String())
	token, err := s.checkPasted(ctx, consent.Ticket, pasted)
	if err != nil {
		return oauth.Redirect{}, s.rejected(ctx, request, err)
	}
	defer token.place.Leave()
	walk.Reach(trace.CodeIssued)
	return s.issueCode(ctx, consent.Ticket, token)
}

// issueCode stores the code and returns the redirect with it.
func (s *Server) issueCode(ctx context.Context, ticket *oauth.Ticket, token *checked) (oauth.Redirect, error) {
	request := ticket.Request()
	secret, err := ticket.Code(token.host, s.settings.Keys)
	if err != nil {
		return oauth.Redirect{}, err
	}
	approval := oauth.Approval{Ticket: ticket, Host: token.host, Principal: token.principal, Code: secret, Chance: s.ports.Random}
	code, err := oauth.IssueCode(approval, s.settings, s.now())
	if err != nil {
		return oauth.Redirect{}, request.Refuse(err)
	}
	if err := s.addCode(ctx, code); err != nil {
		return oauth.Redirect{}, err
	}
	s.keepClient(code)
	if err := s.confirm(ctx, code, token.host); err != nil {
		return oauth.Redirect{}, s.rejected(ctx, request, err)
	}
	return request.Grant(secret), nil
}

// addCode stores a new code. A form that is sent twice finds its code already there.
func (s *Server) addCode(ctx context.Context, code *oauth.AuthorizationCode) error {
	err := s.ports.Store.AddCode(ctx, code, code.Supersedes)
	switch {
	case errors.Is(err, oauth.ErrCodeStands):
		return nil
	case err != nil:
		return err
	}
	s.audit(ctx, "grant_created", "grant", code.ID(), "client", code.Client().Host(), "scope", code.Scopes().String())
	s.makeRoom(ctx, code)
	return nil
}

// confirm asks the site again now that its push would find the code. A token that the site revoked since it was asked leaves no code behind,
// whether the push came before the code or after it (J10). When the site cannot answer, the code is not handed out.
func (s *Server) confirm(ctx context.Context, code *oauth.AuthorizationCode, host oauth.HostToken) error {
	_, err := s.judgeOf(code.Resource()).askPasted(ctx, host)
	if kind, _ := oauth.KindOf(err); kind != oauth.WrongHostToken {
		return err
	}
	return errors.Join(err, s.endOf(ctx, code, oauth.EndedByHostToken))
}

func (s *Server) rejected(ctx context.Context, request *oauth.AuthorizationRequest, err error) error {
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
		s.audit(ctx, "host_token_rejected", "client", request.Client().Host(), "error", err)
	}
	return err
}

// Deny tells the client that the person said no; the site is not asked (B5).
func (s *Server) Deny(ctx context.Context, consent *Consent) error {
	request := consent.Ticket.Request()
	trace.From(ctx).Reach(trace.TokenJudged)
	trace.From(ctx).About(consent.Ticket.ID(), request.Client().String())
	s.audit(ctx, "consent_denied", "client", request.Client().Host())
	return request.Refuse(oauth.Refuse(oauth.AccessDenied, "B5", "The person did not allow it"))
}

// WithholdRedirect seals an error redirect behind a button, so that nobody can use this server to send people elsewhere (M13).
func (s *Server) WithholdRedirect(redirect oauth.Redirect) (string, error) {
	return oauth.SealReturn(redirect, s.settings, s.now())
}

// Return opens what WithholdRedirect sealed (B17).
func (s *Server) Return(sealed string) (oauth.Redirect, error) {
	return oauth.OpenReturn(sealed, s.settings, s.now())
}
