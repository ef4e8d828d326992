package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unique"
)

// Tool is a tool as an MCP server lists it.
type Tool struct{ name, digest string }

// toolDigestSize is larger than a second preimage needs: the author of an MCP server chooses both
// the definition that a client gets first and the one that replaces it.
const toolDigestSize = 24

// NewTool returns a tool with its definition: a canonical text of all that clients and people go
// by.
func NewTool(name string, definition []byte) Tool { return Tool{name, toolDigest(definition)} }

func toolDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:toolDigestSize])
}

// ToolList is a list of tools that a client gets, or a page of one.
type ToolList struct {
	Tools   []Tool
	More    bool // further pages follow
	IsWhole bool // it has no other pages
}

// digests returns the digest of each tool by its name. One for all definitions stands for a name
// that is listed more than once.
func (l ToolList) digests() map[string]string {
	digests := make(map[string]string, len(l.Tools))
	for _, tool := range l.Tools {
		digest := tool.digest
		if earlier, twice := digests[tool.name]; twice {
			digest = toolDigest([]byte(earlier + digest))
		}
		digests[tool.name] = digest
	}
	return digests
}

const (
	maxPinnedTools = 1000
	maxPinsText    = 60_000 // bytes that every store can keep in a text
	maxToolChanges = 50     // of each kind, which a page shows
)

// ToolPins are the tools that the clients of a grant got with their first list, and how later lists
// differ from it. The zero value has no list yet. Equal ones are in memory once, as most grants of
// a server have the same.
type ToolPins struct{ text unique.Handle[string] }

// pinnedTools is the content of ToolPins.
type pinnedTools struct {
	digests map[string]string // by name
	isOpen  bool              // the first list has more pages
	ToolChanges
}

// ToolChanges is how the tools of a server differ from those of an earlier connection, by their
// names.
type ToolChanges struct{ New, Changed, Gone []string }

// Empty reports whether nothing differs.
func (c ToolChanges) Empty() bool { return len(c.New)+len(c.Changed)+len(c.Gone) == 0 }

// RestoreToolPins rebuilds pins from their text.
func RestoreToolPins(text string) (p ToolPins) {
	if text != "" {
		p.text = unique.Make(text)
	}
	return p
}

// String returns the pins as a query, "" for none.
func (p ToolPins) String() string {
	if p == (ToolPins{}) {
		return ""
	}
	return p.text.Value()
}

// IsReadable reports whether the text is as String returns it.
func (p ToolPins) IsReadable() bool { return p == ToolPins{} || p == p.parse().pins() }

const (
	pinsPrefix = "?" // tells pins without tools from none
	toolPrefix = "tool "
)

// parse returns no tools for a text that cannot be read, so that no tool is as it was.
func (p ToolPins) parse() pinnedTools {
	t := pinnedTools{digests: map[string]string{}}
	text, isPinned := strings.CutPrefix(p.String(), pinsPrefix)
	query, err := url.ParseQuery(text)
	if err != nil || !isPinned {
		return t
	}
	t.isOpen = query.Has("open")
	t.New, t.Changed, t.Gone = query["new"], query["changed"], query["gone"]
	for key := range query {
		if name, isTool := strings.CutPrefix(key, toolPrefix); isTool {
			t.digests[name] = query.Get(key)
		}
	}
	return t
}

func (t pinnedTools) pins() ToolPins {
	query := url.Values{"new": t.New, "changed": t.Changed, "gone": t.Gone}
	if t.isOpen {
		query.Set("open", "yes")
	}
	for name, digest := range t.digests {
		query.Set(toolPrefix+name, digest)
	}
	return RestoreToolPins(pinsPrefix + query.Encode())
}

// Permits returns a function that reports whether a client may see and call the tool of a name: if
// it is as it was in the first list, or if the client has not got all of that list yet.
func (p ToolPins) Permits() func(name string) bool {
	t := p.parse()
	return func(name string) bool {
		if _, isPinned := t.digests[name]; isPinned {
			return !slices.Contains(t.Changed, name)
		}
		return t.isOpen || p == ToolPins{}
	}
}

// Changes returns how later lists differ from the first one.
func (p ToolPins) Changes() ToolChanges { return p.parse().ToolChanges }

// After returns the pins after a list. The first list pins its tools, and so do its further pages;
// later ones are compared. Tools beyond the number or the length that a grant can keep count as
// new.
func (p ToolPins) After(list ToolList) ToolPins {
	t, listed := p.parse(), list.digests()
	if p == (ToolPins{}) {
		t.isOpen = true
	}
	length := len(p.String())
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		digest, isPinned := t.digests[name]
		if !isPinned && t.isOpen && len(t.digests) < maxPinnedTools && length < maxPinsText {
			t.digests[name], digest, isPinned = listed[name], listed[name], true
			length += len(url.QueryEscape(toolPrefix+name)) + len(digest) + len("&=")
		}
		t.New = with(t.New, name, !isPinned)
		t.Changed = with(t.Changed, name, isPinned && digest != listed[name])
		t.Gone = with(t.Gone, name, false)
	}
	t.isOpen = t.isOpen && list.More
	if list.IsWhole {
		t.New = slices.DeleteFunc(t.New, func(name string) bool { return listed[name] == "" })
		for _, name := range slices.Sorted(maps.Keys(t.digests)) {
			t.Gone = with(t.Gone, name, listed[name] == "")
		}
	}
	return t.pins()
}

// with returns sorted names with or without a name, and at most maxToolChanges.
func with(names []string, name string, isIn bool) []string {
	at, found := slices.BinarySearch(names, name)
	switch {
	case found && !isIn:
		return slices.Delete(slices.Clone(names), at, at+1)
	case !found && isIn && len(names) < maxToolChanges:
		return slices.Insert(slices.Clone(names), at, name)
	}
	return names
}

// Tools returns the tools that the clients of the grant got.
func (g *AccessGrant) Tools() ToolPins { return g.tools }

// RecordTools records a list that a client gets.
func (g *AccessGrant) RecordTools(list ToolList) {
	if g.state == grantActive {
		g.tools = g.tools.After(list)
	}
}

// LatestTools returns the tools of the newest active grant of a client for a resource.
func (a Authorizations) LatestTools(client ClientID, resource Resource, now time.Time) (latest ToolPins) {
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
	Changes ToolChanges
}

// Unwrap returns the refusal as an *Error.
func (r *ToolReview) Unwrap() error { return r.error }

// NewToolReview returns a *ToolReview for a token that was pasted into the form of a ticket.
func NewToolReview(host HostToken, ticket string, shown ToolPins, settings *Settings, now time.Time) error {
	sealed, err := sealValues(settings, reviewPurpose, now, "ticket", ticket, "token", host.Reveal(),
		"tools", toolDigest([]byte(shown.String())))
	if err != nil {
		return fmt.Errorf("sealing a review of tools: %w", err)
	}
	refusal := Refuse(ToolsChanged, "B26", "the person has to see first how the tools have changed")
	return &ToolReview{refusal, sealed, shown.Changes()}
}

// ReviewedTools is what ToolReview.Sealed contains.
type ReviewedTools struct {
	Host  HostToken // that the person pasted
	tools string    // digest of the ToolPins that were shown
}

// Include reports whether the person has seen these tools.
func (r ReviewedTools) Include(tools ToolPins) bool {
	return r.tools == toolDigest([]byte(tools.String()))
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
	case expired(issuedAt.Add(TicketTTL), now):
		return ReviewedTools{}, Refuse(ExpiredTicket, "B26", "the review of tools is too old")
	}
	return ReviewedTools{Host: HostToken{conceal(values.Get("token"))}, tools: values.Get("tools")}, nil
}
