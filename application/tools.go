package application

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// listTimeout is how long a person waits for the list of tools. Many proxies end a response after a
// minute.
const listTimeout = 45 * time.Second

// bindTools returns the tools that an approval binds, none without BindTools. It refuses with
// ToolsNotListable when they are not known, and with an *oauth.ToolReview while the person has not
// seen how they differ from those of an earlier consent.
func (s *Server) bindTools(ctx context.Context, consent *Consent, token *verifiedToken,
	pasted Pasted) (oauth.ToolDigests, error) {
	if !s.settings.BindTools {
		return oauth.ToolDigests{}, nil
	}
	listed, err := s.listTools(ctx, consent, token)
	if err != nil {
		return oauth.ToolDigests{}, refuseTools(err)
	}
	tools, err := oauth.NewToolDigests(listed)
	if err != nil {
		return oauth.ToolDigests{}, refuseTools(err)
	}
	earlier, err := s.earlierTools(ctx, consent.Ticket.Request(), token.host)
	if err != nil {
		return oauth.ToolDigests{}, err
	}
	changes := earlier.Changes(listed)
	if changes.Empty() {
		return tools, nil
	}
	if pasted.Reviewed != "" {
		reviewed, err := oauth.OpenToolReview(pasted.Reviewed, consent.Ticket.ID(), s.settings, s.now())
		if err != nil || reviewed.Include(tools) {
			return tools, err
		}
	}
	return oauth.ToolDigests{}, oauth.NewToolReview(token.host, consent.Ticket.ID(), tools, changes, s.settings,
		s.now())
}

func refuseTools(cause error) error {
	return oauth.Refuse(oauth.ToolsNotListable, "B26", "the tools of the MCP server cannot be listed", cause)
}

// listTools lists the tools as the client will find them.
func (s *Server) listTools(ctx context.Context, consent *Consent, token *verifiedToken) ([]oauth.Tool, error) {
	request := consent.Ticket.Request()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listings := s.guardFor(request.Resource()).listings
	if err := listings.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer listings.Release(1)
	return s.ports.Tools.Tools(ctx, request.Resource(), oauth.Caller{
		Grant:   consent.Ticket.ID(),
		Client:  request.Client(),
		Subject: token.principal.Subject,
		Roles:   token.principal.Roles,
		Scopes:  request.Chosen(consent.Choice),
	}, token.host)
}

// earlierTools returns the tools of the newest connection of the same client that was made with the
// same token.
func (s *Server) earlierTools(ctx context.Context, request *oauth.AuthorizationRequest,
	host oauth.HostToken) (oauth.ToolDigests, error) {
	prints, err := s.settings.Fingerprints(host)
	if err != nil {
		return oauth.ToolDigests{}, err
	}
	var all oauth.Authorizations
	for _, print := range prints {
		found, err := s.store.AuthorizationsOf(ctx, print)
		if err != nil {
			return oauth.ToolDigests{}, err
		}
		all.Grants = append(all.Grants, found.Grants...)
	}
	return all.LatestTools(request.Client(), request.Resource(), s.now()), nil
}
