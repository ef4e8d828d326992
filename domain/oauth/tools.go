package oauth

import (
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/toolset"
)

// Tools returns the tools that the clients of the grant got.
func (g *AccessGrant) Tools() toolset.Pins { return g.tools }

// RecordTools records a list of tools that a client gets, unless the grant has ended.
func (g *AccessGrant) RecordTools(list toolset.List) {
	if g.state == grantActive {
		g.tools = g.tools.After(list)
	}
}

// LatestTools returns the tools of the newest active grant of a client for a resource.
func (a Authorizations) LatestTools(client ClientID, resource Resource, now time.Time) (latest toolset.Pins) {
	var newest time.Time
	for _, grant := range a.Grants {
		if grant.client.ID == client && grant.resource == resource && grant.active(now) &&
			grant.createdAt.After(newest) {
			latest, newest = grant.tools, grant.createdAt
		}
	}
	return latest
}

const reviewPurpose = "tools"

// ToolReview is the refusal of an approval before the person has seen how the tools differ from
// those of an earlier connection. It contains the sealed pasted token, so that the person does not
// have to paste it again.
type ToolReview struct {
	error
	Sealed  string
	Changes toolset.Changes
}

// Unwrap returns the refusal as an *Error.
func (r *ToolReview) Unwrap() error { return r.error }

// NewToolReview returns a *ToolReview for a token that was pasted into the form of a ticket.
func NewToolReview(host HostToken, ticket string, shown toolset.Pins, settings *Settings, now time.Time) error {
	sealed, err := sealValues(settings, reviewPurpose, now, "ticket", ticket, "token", host.Reveal(),
		"tools", shown.Digest())
	if err != nil {
		return fmt.Errorf("sealing a review of tools: %w", err)
	}
	refusal := Refuse(ToolsChanged, "B26", "the person has to see first how the tools have changed")
	return &ToolReview{refusal, sealed, shown.Changes()}
}

// ReviewedTools is what ToolReview.Sealed contains.
type ReviewedTools struct {
	Host  HostToken // as the person pasted it
	tools string    // digest of the toolset.Pins that were shown
}

// Include reports whether the person has seen these tools.
func (r ReviewedTools) Include(tools toolset.Pins) bool {
	return r.tools == tools.Digest()
}

// OpenToolReview opens the ToolReview.Sealed of a ticket. It refuses that of another ticket with
// InvalidTicket, and an old one with ExpiredTicket.
func OpenToolReview(sealed, ticket string, settings *Settings, now time.Time) (ReviewedTools, error) {
	values, issuedAt, err := openValues(settings, reviewPurpose, sealed)
	switch {
	case err != nil:
		return ReviewedTools{}, err
	case values.Get("ticket") != ticket:
		return ReviewedTools{}, Refuse(InvalidTicket, "B26", "the review of tools is for another form")
	case expired(issuedAt.Add(TicketTTL), now):
		return ReviewedTools{}, Refuse(ExpiredTicket, "B26", "the review of tools is too old")
	}
	return ReviewedTools{Host: HostToken{conceal(values.Get("token"))}, tools: values.Get("tools")}, nil
}
