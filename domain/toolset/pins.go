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

// New returns a tool with its definition: a canonical text of all that clients and people go
// by.
func New(name string, definition []byte) Tool { return Tool{name, digestOf(definition)} }

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:digestSize])
}

// List is a list of tools that a client gets, or a page of one.
type List struct {
	Tools   []Tool
	More    bool // further pages follow
	IsWhole bool // it has no other pages
}

// digests returns the digest of each tool by its name. One for all definitions stands for a name
// that is listed more than once.
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
	maxPinsText    = 60_000 // bytes that every store can keep in a text
	maxChanges     = 50     // of each kind, which a page shows
)

// Pins are the tools that the clients of a grant got with their first list, and how later lists
// differ from it. The zero value has no list yet. Equal ones are in memory once, as most grants of
// a server have the same.
type Pins struct{ text unique.Handle[string] }

// content is the content of Pins.
type content struct {
	digests map[string]string // by name
	isOpen  bool              // the first list has more pages
	Changes
}

// Changes is how the tools of a server differ from those of an earlier connection, by their
// names.
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

// IsReadable reports whether the text is as String returns it.
func (p Pins) IsReadable() bool { return p == Pins{} || p == p.parse().pins() }

const (
	pinsPrefix = "?" // tells pins without tools from none
	toolPrefix = "tool "
)

// parse returns no tools for a text that cannot be read, so that no tool is as it was.
func (p Pins) parse() content {
	t := content{digests: map[string]string{}}
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

func (t content) pins() Pins {
	query := url.Values{"new": t.New, "changed": t.Changed, "gone": t.Gone}
	if t.isOpen {
		query.Set("open", "yes")
	}
	for name, digest := range t.digests {
		query.Set(toolPrefix+name, digest)
	}
	return Restore(pinsPrefix + query.Encode())
}

// Permits returns a function that reports whether a client may see and call the tool of a name: if
// it is as it was in the first list, or if the client has not got all of that list yet.
func (p Pins) Permits() func(name string) bool {
	t := p.parse()
	return func(name string) bool {
		if _, isPinned := t.digests[name]; isPinned {
			return !slices.Contains(t.Changed, name)
		}
		return t.isOpen || p == Pins{}
	}
}

// Changes returns how later lists differ from the first one.
func (p Pins) Changes() Changes { return p.parse().Changes }

// After returns the pins after a list. The first list pins its tools, and so do its further pages;
// later ones are compared. Tools beyond the number or the length that a grant can keep count as
// new.
func (p Pins) After(list List) Pins {
	t, listed := p.parse(), list.digests()
	if p == (Pins{}) {
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

// with returns sorted names with or without a name, and at most maxChanges.
func with(names []string, name string, isIn bool) []string {
	at, found := slices.BinarySearch(names, name)
	switch {
	case found && !isIn:
		return slices.Delete(slices.Clone(names), at, at+1)
	case !found && isIn && len(names) < maxChanges:
		return slices.Insert(slices.Clone(names), at, name)
	}
	return names
}
