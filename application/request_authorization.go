package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Consent is the question to the person; its sealed ticket is a field of the form.
type Consent struct {
	Ticket *oauth.Ticket
	Sealed string
}

// RequestAuthorization checks a client's request (A5-A31) and returns the question to the person. An error for the client is an
// *oauth.Refusal; every other error is for the person only.
func (s *Server) RequestAuthorization(ctx context.Context, p oauth.Parameters) (*Consent, error) {
	recorder := trace.From(ctx)
	recorder.Record(trace.Authorize)
	id, err := s.clientID(p)
	if err != nil {
		return nil, err
	}
	recorder.Identify("", id.String())
	client, err := s.client(ctx, id, p.Get("redirect_uri"))
	if err != nil {
		return nil, oauth.WithClientHost(id, err)
	}
	recorder.Record(trace.Page)
	request, err := oauth.NewAuthorizationRequest(client, p, s.settings)
	if err != nil {
		return nil, oauth.WithClientHost(id, err)
	}
	ticket, err := oauth.NewTicket(request, s.ports.Random, s.now())
	if err != nil {
		return nil, err
	}
	recorder.Identify(ticket.ID(), "")
	sealed, err := ticket.Seal(s.settings.Keys)
	if err != nil {
		return nil, fmt.Errorf("sealing the ticket: %w", err)
	}
	return &Consent{ticket, sealed}, nil
}

func (s *Server) clientID(p oauth.Parameters) (oauth.ClientID, error) {
	if err := p.CheckNotRepeated("client_id", "redirect_uri", "state"); err != nil {
		return oauth.ClientID{}, err
	}
	if p.Get("client_id") == "" {
		return oauth.ClientID{}, oauth.Refuse(oauth.InvalidRequest, "A7", "the client_id is missing")
	}
	return oauth.ParseClientID(p.Get("client_id"), s.settings.ClientID)
}

func (s *Server) client(ctx context.Context, id oauth.ClientID, redirectURI string) (*oauth.ClientMetadata, error) {
	if err := s.settings.CheckClient(id); err != nil {
		return nil, err
	}
	trace.From(ctx).Record(trace.ClientMetadata)
	client, err := s.ports.Clients.Client(ctx, id, redirectURI)
	if err != nil {
		s.audit(ctx, "cimd_rejected", "client", id.Host(), "reason", err)
		return nil, clientRefusal(err)
	}
	if checkedAt, failure := client.FailedCheck(); failure != nil {
		s.audit(ctx, "cimd_unchecked", "client", id.Host(), "checked_at", checkedAt, "reason", failure)
		trace.From(ctx).Explain(oauth.Refuse(oauth.ClientUnreachable, "C57", "the app's description cannot be fetched; its version of "+
			checkedAt.UTC().Format(time.DateTime)+" UTC is used", failure))
	}
	return client, nil
}

const notFetched = "the app's published description cannot be fetched"

// clientRefusal has one text for every failed fetch, so that the page does not reveal which internal hosts exist (C41, C42). Only the log and the trace
// name the rule.
func clientRefusal(err error) error {
	switch {
	case errors.Is(err, oauth.ErrMetadataSlow):
		return oauth.RefuseFor(oauth.WaitOf(err), oauth.ClientUnreachable, "C53", notFetched, err)
	case errors.Is(err, oauth.ErrMetadataNoDocument):
		return oauth.Refuse(oauth.ClientUnreachable, "C42", notFetched, err)
	case errors.Is(err, oauth.ErrMetadataUnreachable):
		return oauth.Refuse(oauth.ClientUnreachable, "C41", notFetched, err)
	case errors.Is(err, oauth.ErrMetadataMalformed):
		return oauth.Refuse(oauth.InvalidClientDocument, "C43", "the app's published description is not valid", err)
	case errors.Is(err, oauth.ErrMetadataBudget):
		return oauth.RefuseFor(oauth.WaitOf(err), oauth.ClientBusy, "C21", "too many apps are being looked up just now", err)
	}
	return err
}
