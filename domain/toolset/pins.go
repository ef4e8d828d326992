// Package toolset compares the tools that an MCP server lists now with those that the clients of a
// grant got first. Pins is its main type.
package toolset

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unique"
)

// Tool is a tool as an MCP server lists it.
type Tool struct{ name, digest string }

// digestSize is larger than a second preimage needs: the author of an MCP server chooses both
// the definition that a client gets first and the one that replaces it.
const digestSize = 24

// New returns a tool. The definition is a canonical text of all that clients and people go by.
func New(name string, definition []byte) Tool { return Tool{name, digestOf(definition)} }

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:digestSize])
}

// List is a list of tools that a client gets, or a page of one.
type List struct {
	Tools   []Tool
	IsFirst bool // the client asked for the first page
	More    bool // further pages follow
}

// digests returns the digest of each tool by its name. A name that is listed more than once has one
// digest of all its definitions.
func (l List) digests() map[string]string {
	digests := make(map[string]string, len(l.Tools))
	for _, tool := range l.Tools {
		digest := tool.digest
		if earlier, twice := digests[tool.name]; twice {
			digest = digestOf([]byte(earlier + digest))
		}
		digests[tool.name] = digest
	}
	return digests
}

const (
	maxPinnedTools = 1000
	maxPinsText    = 60_000 // bytes of the pinned tools, which every store can keep in a text
	maxNewText     = 4_000  // bytes of the names of new tools, which are kept in addition
	maxChanges     = 50     // of each kind, which a page shows
)

// Pins are the tools that the clients of a grant got with their first list, and how later lists
// differ from it. The zero value is for a grant without a list. Equal Pins share their memory,
// because most grants of a server have the same.
type Pins struct{ text unique.Handle[string] }

// content is the content of Pins.
type content struct {
	tools  map[string]pinned // by name
	isOpen bool              // the first list has more pages
	added  []string          // names of new tools; one more than maxChanges stands for all others
}

// pinned is a tool of the first list, and how it is in the latest one.
type pinned struct {
	digest        string
	changed, gone bool
}

// Changes is how the tools of a server differ from those of an earlier connection, by their names.
// After 50 of a kind, "…" stands for the others.
type Changes struct{ New, Changed, Gone []string }

// Empty reports whether nothing differs.
func (c Changes) Empty() bool { return len(c.New)+len(c.Changed)+len(c.Gone) == 0 }

// Restore rebuilds pins from their text.
func Restore(text string) (p Pins) {
	if text != "" {
		p.text = unique.Make(text)
	}
	return p
}

// String returns the pins as a query, "" for none.
func (p Pins) String() string {
	if p == (Pins{}) {
		return ""
	}
	return p.text.Value()
}

// Digest returns a digest of the pins.
func (p Pins) Digest() string { return digestOf([]byte(p.String())) }

// IsReadable reports whether parsing the text loses nothing.
func (p Pins) IsReadable() bool { return p == Pins{} || p == p.parse().pins() }

const (
	pinsPrefix = "?" // distinguishes pins of an empty list from the zero value
	toolPrefix = "tool "

	changedFlag, goneFlag = "c", "g" // after the digest of a tool
)

// parse returns no tools for a text that cannot be read, so that Permits permits none.
func (p Pins) parse() content {
	t := content{tools: map[string]pinned{}}
	text, isPinned := strings.CutPrefix(p.String(), pinsPrefix)
	query, err := url.ParseQuery(text)
	if err != nil || !isPinned {
		return t
	}
	t.isOpen = query.Has("open")
	t.added = query["new"]
	for key := range query {
		if name, isTool := strings.CutPrefix(key, toolPrefix); isTool {
			digest, flags, _ := strings.Cut(query.Get(key), " ")
			t.tools[name] = pinned{digest, strings.Contains(flags, changedFlag), strings.Contains(flags, goneFlag)}
		}
	}
	return t
}

func (t content) pins() Pins {
	query := url.Values{"new": t.added}
	if t.isOpen {
		query.Set("open", "yes")
	}
	for name, tool := range t.tools {
		text := tool.digest
		if tool.changed || tool.gone {
			text += " "
		}
		if tool.changed {
			text += changedFlag
		}
		if tool.gone {
			text += goneFlag
		}
		query.Set(toolPrefix+name, text)
	}
	return Restore(pinsPrefix + query.Encode())
}

// Permits returns a function that reports whether a client may see and call the tool of a name: if
// it is as it was in the first list, or if the client has not got any list yet.
func (p Pins) Permits() func(name string) bool {
	t := p.parse()
	return func(name string) bool {
		tool, isPinned := t.tools[name]
		return isPinned && !tool.changed || p == Pins{}
	}
}

// Changes returns how later lists differ from the first one.
func (p Pins) Changes() (found Changes) {
	t := p.parse()
	for _, name := range t.added {
		found.New = withMore(found.New, name, true)
	}
	for _, name := range slices.Sorted(maps.Keys(t.tools)) {
		found.Changed = withMore(found.Changed, name, t.tools[name].changed)
		found.Gone = withMore(found.Gone, name, t.tools[name].gone)
	}
	return found
}

// withMore adds a name if it isIn, and "…" for the first one after maxChanges.
func withMore(names []string, name string, isIn bool) []string {
	switch {
	case !isIn || len(names) > maxChanges:
		return names
	case len(names) == maxChanges:
		name = "…"
	}
	return append(names, name)
}

// After returns the pins after a client has got a list. The first list and its further pages pin
// their tools, until a client asks for the first page again. Later lists are compared with the
// pins. Tools beyond the number or the length that a grant can keep count as new.
func (p Pins) After(list List) Pins {
	t, listed := p.parse(), list.digests()
	t.isOpen = p == Pins{} || t.isOpen && !list.IsFirst
	isWhole := list.IsFirst && !list.More
	if isWhole { // a new tool that it lacks has gone
		t.added = slices.DeleteFunc(t.added, func(name string) bool { return listed[name] == "" })
	}
	length := len(p.String())
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		tool, isPinned := t.tools[name]
		if !isPinned && t.isOpen && len(t.tools) < maxPinnedTools && length < maxPinsText {
			tool, isPinned = pinned{digest: listed[name]}, true
			length += len(url.QueryEscape(toolPrefix+name)) + len(tool.digest) + len("&=+cg") // also for its flags
		}
		if isPinned {
			tool.changed, tool.gone = tool.digest != listed[name], false
			t.tools[name] = tool
		} else if len(t.added) <= maxChanges && !slices.Contains(t.added, name) &&
			len(url.QueryEscape(strings.Join(t.added, "")+name)) < maxNewText {
			t.added = append(t.added, name)
		}
	}
	t.isOpen = t.isOpen && list.More
	for name, tool := range t.tools {
		tool.gone = tool.gone || isWhole && listed[name] == ""
		t.tools[name] = tool
	}
	slices.Sort(t.added)
	return t.pins()
}
