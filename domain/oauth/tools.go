package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Tool is a tool as its MCP server lists it.
type Tool struct {
	Name        string
	Description string // for people; cut after maxToolDescription
	digest      string
}

// toolDigestSize is larger than a second preimage needs: the author of an MCP server chooses both
// the definition that people approve and the one that replaces it.
const toolDigestSize = 24

// maxToolDescription is in bytes, more than a page shows: gateways keep the lists of many people.
const maxToolDescription = 1_000

// NewTool returns a tool with its definition: a canonical text of all that clients and people go
// by.
func NewTool(name, description string, definition []byte) Tool {
	if len(description) > maxToolDescription {
		description = strings.ToValidUTF8(strings.Clone(description[:maxToolDescription]), "")
	}
	return Tool{Name: name, Description: description, digest: toolDigest(definition)}
}

func toolDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:toolDigestSize])
}

// toolDigests returns the digest of each tool by its name. One for all definitions stands for a
// name that is listed more than once.
func toolDigests(tools []Tool) map[string]string {
	digests := make(map[string]string, len(tools))
	for _, tool := range tools {
		digest := tool.digest
		if earlier, twice := digests[tool.Name]; twice {
			digest = toolDigest([]byte(earlier + digest))
		}
		digests[tool.Name] = digest
	}
	return digests
}

// maxToolsText is the length in bytes that every store can keep in a text.
const maxToolsText = 60_000

var errManyTools = errors.New("the MCP server lists more tools than a grant can keep, which is 60,000 bytes of " +
	"names and digests")

// ToolDigests are the tools that a person has approved. The zero value is for a consent that does
// not bind tools.
type ToolDigests struct{ text string }

// boundPrefix tells a consent to no tools from one that does not bind tools.
const boundPrefix = "?"

// NewToolDigests returns the digests of tools. It fails if they are too long for a store.
func NewToolDigests(tools []Tool) (ToolDigests, error) {
	digests := newToolDigests(toolDigests(tools))
	if len(digests.text) > maxToolsText {
		return ToolDigests{}, errManyTools
	}
	return digests, nil
}

func newToolDigests(digests map[string]string) ToolDigests {
	query := url.Values{}
	for name, digest := range digests {
		query.Set(name, digest)
	}
	return ToolDigests{boundPrefix + query.Encode()}
}

// RestoreToolDigests rebuilds them from their text.
func RestoreToolDigests(text string) ToolDigests { return ToolDigests{text} }

// String returns a query with the digest of each tool by its name, sorted; "" for a consent that
// does not bind tools.
func (d ToolDigests) String() string { return d.text }

// AreBound reports whether the consent binds tools.
func (d ToolDigests) AreBound() bool { return d.text != "" }

// Of returns the digests of the named tools.
func (d ToolDigests) Of(names []string) ToolDigests {
	if !d.AreBound() {
		return d
	}
	digests := d.parse()
	maps.DeleteFunc(digests, func(name, _ string) bool { return !slices.Contains(names, name) })
	return newToolDigests(digests)
}

// IsReadable reports whether the text is as NewToolDigests writes it.
func (d ToolDigests) IsReadable() bool {
	return d.text == "" || d == newToolDigests(d.parse())
}

// parse returns nothing for a text that cannot be read, so that no tool is as it was.
func (d ToolDigests) parse() map[string]string {
	text, isBound := strings.CutPrefix(d.text, boundPrefix)
	query, err := url.ParseQuery(text)
	if err != nil || !isBound {
		return nil
	}
	digests := map[string]string{}
	for name := range query {
		digests[name] = query.Get(name)
	}
	return digests
}

// Check compares a tool with what the MCP server lists now. It refuses one that is new or has
// changed with InsufficientScope, and returns ErrUnlistedTool for one that is not listed.
func (d ToolDigests) Check(name string, listed []Tool) error {
	digest, isListed := toolDigests(listed)[name]
	if !isListed {
		return ErrUnlistedTool
	}
	if approved, known := d.parse()[name]; !known || approved != digest {
		return Refuse(InsufficientScope, "G23", "the tool is new or has changed")
	}
	return nil
}

// ToolChanges is how the tools of a server differ from those of an earlier consent.
type ToolChanges struct{ New, Changed, Gone []Tool }

// Empty reports whether nothing differs.
func (c ToolChanges) Empty() bool { return len(c.New)+len(c.Changed)+len(c.Gone) == 0 }

// Changes compares the tools of the consent with those that the MCP server lists now. Those of a
// consent that does not bind tools are not known, and do not differ.
func (d ToolDigests) Changes(listed []Tool) (changes ToolChanges) {
	if !d.AreBound() {
		return changes
	}
	approved, now := d.parse(), toolDigests(listed)
	for _, tool := range listed {
		switch digest, known := approved[tool.Name]; {
		case !known:
			changes.New = append(changes.New, tool)
		case digest != now[tool.Name]:
			changes.Changed = append(changes.Changed, tool)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(approved)) {
		if _, isListed := now[name]; !isListed {
			changes.Gone = append(changes.Gone, Tool{Name: name})
		}
	}
	return changes
}

// LatestTools returns the tools of the newest active grant of a client for a resource.
func (a Authorizations) LatestTools(client ClientID, resource Resource, now time.Time) (latest ToolDigests) {
	var newest time.Time
	for _, grant := range a.Grants {
		if grant.client.raw == client.raw && grant.resource == resource && grant.active(now) &&
			grant.tools.AreBound() && grant.createdAt.After(newest) {
			latest, newest = grant.tools, grant.createdAt
		}
	}
	return latest
}

const reviewPurpose = "tools"

// ToolReview is the refusal of an approval before the person has seen how the tools differ from
// those of an earlier consent. It contains the sealed pasted token, so that the person does not
// have to paste it again.
type ToolReview struct {
	error
	Sealed  string
	Changes ToolChanges
}

// Unwrap returns the refusal as an *Error.
func (r *ToolReview) Unwrap() error { return r.error }

// NewToolReview returns a *ToolReview for a token that was pasted into the form of a ticket.
func NewToolReview(host HostToken, ticket string, shown ToolDigests, changes ToolChanges, settings *Settings,
	now time.Time) error {
	sealed, err := sealValues(settings.Keys, reviewPurpose, settings.Issuer, "at", formatMillis(now), "ticket", ticket,
		"token", host.Reveal(), "tools", toolDigest([]byte(shown.text)))
	if err != nil {
		return fmt.Errorf("sealing a review of tools: %w", err)
	}
	refusal := Refuse(ToolsChanged, "B26", "the person has to see first how the tools have changed")
	return &ToolReview{refusal, sealed, changes}
}

// ReviewedTools is what ToolReview.Sealed contains.
type ReviewedTools struct {
	Host  HostToken // that the person pasted
	tools string    // digest of the ToolDigests that were shown
}

// Include reports whether the person has seen these tools.
func (r ReviewedTools) Include(tools ToolDigests) bool {
	return r.tools == toolDigest([]byte(tools.text))
}

// OpenToolReview opens ToolReview.Sealed of the same ticket. It refuses with InvalidTicket or
// ExpiredTicket.
func OpenToolReview(sealed, ticket string, settings *Settings, now time.Time) (ReviewedTools, error) {
	values, issuedAt, err := openValues(settings, reviewPurpose, sealed)
	switch {
	case err != nil:
		return ReviewedTools{}, err
	case values.Get("ticket") != ticket:
		return ReviewedTools{}, Refuse(InvalidTicket, "B26", "the review of tools is for another form")
	case expired(issuedAt.Add(settings.TicketTTL), now):
		return ReviewedTools{}, Refuse(ExpiredTicket, "B26", "the review of tools is too old")
	}
	return ReviewedTools{Host: HostToken{conceal(values.Get("token"))}, tools: values.Get("tools")}, nil
}
