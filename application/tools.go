package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/toolset"
)

// BindTools makes approvals show how the tools of an MCP server differ from those of an earlier
// connection. Clients then get their lists through RecordTools.
func (s Tokens) BindTools() { s.bindsTools.Store(true) }

// RecordTools records a list of tools that a client of the grant with the id gets. The pins that it
// returns permit the tools that the client may see.
func (s Tokens) RecordTools(ctx context.Context, id string, list toolset.List) (toolset.Pins, error) {
	if grant := s.store.Trusted(id); grant != nil && grant.Tools().After(list) == grant.Tools() {
		return grant.Tools(), nil
	}
	grant, err := s.store.Grant(ctx, id)
	if err != nil {
		return toolset.Pins{}, err
	}
	pins := grant.Tools().After(list)
	if pins == grant.Tools() {
		return pins, nil
	}
	err = s.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) error {
		g.RecordTools(list)
		pins = g.Tools()
		return nil
	})
	if changes := pins.Changes(); err == nil && !changes.Empty() {
		s.ports.Logger.WarnContext(ctx, "the MCP server lists other tools than the client got first", "grant", id,
			"new", changes.New, "changed", changes.Changed, "gone", changes.Gone, "rule", "G23")
	}
	return pins, err
}

// reviewTools refuses with an *oauth.ToolReview while the person has not seen how the tools differ
// from those of an earlier connection.
func (s *core) reviewTools(ctx context.Context, consent *Consent, host oauth.HostToken, pasted Pasted) error {
	if !s.bindsTools.Load() {
		return nil
	}
	prints, err := s.Settings.Fingerprints(host)
	if err != nil {
		return err
	}
	all, err := s.authorizationsOf(ctx, prints)
	if err != nil {
		return err
	}
	request := consent.Ticket.Request()
	earlier := all.LatestTools(request.Client.ID, request.Resource, s.now())
	if earlier.Changes().Empty() {
		return nil
	}
	if pasted.Reviewed != "" {
		reviewed, err := oauth.OpenToolReview(pasted.Reviewed, consent.Ticket.ID(), s.Settings, s.now())
		if err != nil || reviewed.Include(earlier) {
			return err
		}
	}
	return oauth.NewToolReview(host, consent.Ticket.ID(), earlier, s.Settings, s.now())
}
