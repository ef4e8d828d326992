package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// OpenConsent opens the ticket of a submitted form. It refuses with InvalidTicket or ExpiredTicket,
// and with InvalidRequest a choice that the page did not offer.
func (s Authorize) OpenConsent(sealed string, choice *oauth.Choice) (*Consent, error) {
	ticket, err := oauth.OpenTicket(sealed, s.Settings, s.now())
	if err != nil {
		return nil, err
	}
	return &Consent{ticket, sealed, choice}, ticket.Request().CheckChoice(choice)
}

// Approve verifies the pasted token and returns the redirect with a code. A refusal that ends the
// request is an *oauth.Refusal; after MissingHostToken, WrongHostToken, HostTokenNotVerifiable,
// ToolsChanged and TooManyGuesses the person can try again. ToolsChanged is an *oauth.ToolReview.
func (s Authorize) Approve(ctx context.Context, consent *Consent, pasted Pasted) (oauth.Redirect, error) {
	request := consent.Ticket.Request()
	secret, err := s.approve(ctx, consent, pasted)
	if err != nil {
		if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
			s.auditOf(ctx, "host_token_rejected", request.Client, "error", err)
		}
		return oauth.Redirect{}, err
	}
	return request.Grant(secret), nil
}

// Callback is the URL with which the client on another computer receives its code. It is secret.
type Callback struct {
	URL       string
	ExpiresAt time.Time
	Left      time.Duration // the time left until ExpiresAt
}

// ApproveElsewhere is Approve for a client on another computer than the browser. The person copies
// the callback URL to the client.
func (s Authorize) ApproveElsewhere(ctx context.Context, consent *Consent, pasted Pasted) (*Callback, error) {
	request := consent.Ticket.Request()
	if err := request.CheckCallbackCopy(s.Clients.Hosted(request.Client.ID) != nil); err != nil {
		return nil, err
	}
	redirect, err := s.Approve(ctx, consent, pasted)
	if err != nil {
		return nil, err
	}
	// If the form was submitted twice, the stored code is the first one, which expires earlier.
	code, err := s.store.Code(ctx, consent.Ticket.ID())
	if err != nil {
		return nil, err
	}
	s.auditOf(ctx, "callback_shown", request.Client, "grant", code.ID())
	return &Callback{URL: redirect.Location, ExpiresAt: code.ExpiresAt(), Left: code.ExpiresAt().Sub(s.now())}, nil
}

// approve verifies the pasted token, and stores and returns the new code. It records each step at
// its beginning, so that a refusal belongs to the step.
func (s *core) approve(ctx context.Context, consent *Consent, pasted Pasted) (secret oauth.Secret, err error) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	request := consent.Ticket.Request()
	attempt.From(ctx).Record(attempt.TokenJudged)
	s.traceAs(ctx, consent.Ticket.ID(), request.Client)
	host, err := s.parsePasted(pasted, consent.Ticket.ID(), s.Settings.HostFields)
	if err != nil {
		return secret, err
	}
	principal, err := s.check(ctx, quota.Guess{By: pasted.By}, request.Resource, host)
	if err != nil {
		return secret, err
	}
	attempt.From(ctx).Record(attempt.CodeIssued)
	if err := s.reviewTools(ctx, consent, host, pasted); err != nil {
		return secret, err
	}
	if secret, err = consent.Ticket.Code(host, consent.Choice, s.Settings.Keys); err != nil {
		return secret, err
	}
	code, err := oauth.IssueCode(oauth.Approval{
		Ticket:    consent.Ticket,
		Choice:    consent.Choice,
		Host:      host,
		Principal: principal,
		Code:      secret,
		Random:    s.ports.Random,
	}, s.Settings, s.now())
	if err != nil {
		return secret, request.Refuse(err)
	}
	if err := s.addCode(ctx, code, host); err != nil {
		return secret, err
	}
	s.keepClient(ctx, code.Client().ID)
	// An EndGrantsOf from before the code was stored found nothing to end, so the token is verified
	// again. When the site cannot answer, the client does not receive the code.
	_, err = s.guardFor(code.Resource()).verifyPasted(ctx, host)
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
		_, endErr := s.endAuthorization(ctx, code.ID(), oauth.EndedByHostToken)
		err = errors.Join(err, endErr)
	}
	return secret, err
}

// addCode stores a new code, unless an earlier submission of the form has stored the same one.
func (s *core) addCode(ctx context.Context, code *oauth.AuthorizationCode, host oauth.HostToken) error {
	of := oauth.Selection{Code: code.ID(), Known: &oauth.Authorizations{}} // most tickets have no code yet
	err := s.store.Change(ctx, of, func(found *oauth.Authorizations) error {
		for _, earlier := range found.Codes {
			if err := code.Supersedes(earlier); err != nil {
				return err
			}
		}
		found.Codes = []*oauth.AuthorizationCode{code}
		return nil
	})
	switch {
	case errors.Is(err, oauth.ErrCodeStillValid):
		return nil
	case err != nil:
		return err
	}
	s.auditOf(ctx, "grant_created", code.Client(), "grant", code.ID(), "scope", code.Scopes().String())
	s.enforceGrantLimit(ctx, code.ID(), host)
	return nil
}

// Deny returns the refusal with access_denied, an *oauth.Refusal, or refuses with UsedTicket if the
// same form was approved before. It does not call the verifier.
func (s Authorize) Deny(ctx context.Context, consent *Consent) error {
	request := consent.Ticket.Request()
	attempt.From(ctx).Record(attempt.TokenJudged)
	s.traceAs(ctx, consent.Ticket.ID(), request.Client)
	if _, err := s.store.Code(ctx, consent.Ticket.ID()); err == nil { // during an outage, a person can still say no
		return oauth.Refuse(oauth.UsedTicket, "B13", "the form was approved before")
	}
	s.auditOf(ctx, "consent_denied", request.Client)
	return request.Refuse(oauth.Refuse(oauth.AccessDenied, "B5", "The person did not allow it"))
}

// SealRedirect seals an error redirect for the button of a page, so that this server is not an open
// redirector.
func (s Authorize) SealRedirect(redirect oauth.Redirect) (string, error) {
	return oauth.SealReturn(redirect, s.Settings, s.now())
}

// OpenRedirect opens a redirect of SealRedirect.
func (s Authorize) OpenRedirect(sealed string) (oauth.Redirect, error) {
	return oauth.OpenReturn(sealed, s.Settings, s.now())
}
