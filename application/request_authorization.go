package application

import (
	"context"
	"fmt"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Consent is the question to the person; its sealed ticket is a field of the form.
type Consent struct {
	Ticket *oauth.Ticket
	Sealed string
	Choice *oauth.Choice // of a submitted form; nil for all that the client requests
}

// RequestAuthorization checks a client's request and returns the question to the person. An error
// for the client is an *oauth.Refusal; every other error is for the person only.
func (s Authorize) RequestAuthorization(ctx context.Context, p oauth.Parameters) (*Consent, error) {
	recorder := attempt.From(ctx)
	recorder.Record(attempt.Authorize)
	if err := p.CheckNotRepeated("client_id", "redirect_uri", "state"); err != nil {
		return nil, err
	}
	if p.Get("client_id") == "" {
		return nil, oauth.Refuse(oauth.InvalidRequest, "A7", "the client_id is missing")
	}
	id, err := s.Clients.ParseID(p.Get("client_id"))
	if err != nil {
		return nil, err
	}
	recorder.Identify("", s.Clients.LabelOfID(id))
	var redirect oauth.RedirectURI
	var request *oauth.AuthorizationRequest
	found, err := s.client(ctx, id, p.Get("redirect_uri")) // a kept document without this URI is fetched again
	if err == nil {
		recorder.Record(attempt.Page)
		redirect, err = found.RedirectURI(p.Get("redirect_uri"))
	}
	if err == nil {
		request, err = oauth.NewAuthorizationRequest(found.Client, redirect, p, s.Settings)
	}
	if !s.Clients.IsSelfRegistered(id) {
		err = client.WithHost(id, err) // for the error page
	}
	if err != nil {
		return nil, err
	}
	ticket, err := oauth.NewTicket(request, s.ports.Random, s.now())
	if err != nil {
		return nil, err
	}
	recorder.Identify(ticket.ID(), "")
	if request.ForgetsRefresh {
		recorder.Explain(oauth.Refuse(oauth.InvalidRequest, "A47",
			"the client gets no refresh token, because it does not request offline_access"))
	}
	sealed, err := ticket.Seal()
	if err != nil {
		return nil, fmt.Errorf("sealing the ticket: %w", err)
	}
	return &Consent{Ticket: ticket, Sealed: sealed}, nil
}
