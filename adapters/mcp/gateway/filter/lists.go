package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/toolset"
)

// Lists reports which names of each kind the caller may see. A nil function permits every name.
type Lists struct {
	Tools     func(name string) bool
	Prompts   func(name string) bool
	Resources func(uri string) bool // also for the templates of URIs

	// Record records each list of tools that the caller gets, and returns which of them the caller
	// may see; nil for all.
	Record      func(list toolset.List) (toolset.Pins, error)
	IsFirstPage bool // the request was for the first page of the tools
}

// Filter returns a JSON-RPC message, or a batch of them, without the elements that the caller may
// not see, in lists of tools, prompts, resources and resource templates. It also forbids shared
// caches to store results, because those differ between callers. It goes by the shape of results,
// because a response can come on another stream than its request. It drops notifications about
// resources that the caller may not see, and returns nil if nothing is left. It fails for a text
// that message.Decode refuses.
func (l Lists) Filter(text []byte) ([]byte, error) {
	messages, isBatch, err := message.Decode(text)
	if err != nil {
		return nil, err
	}
	var shown []message.Message
	for _, m := range messages {
		if l.hides(m) {
			continue
		}
		if m.Result.Kind() == '{' {
			if m.Result, err = l.result(m.Result); err != nil {
				return nil, err
			}
		}
		shown = append(shown, m)
	}
	return message.Body{Messages: shown, IsBatch: isBatch}.Encode(), nil
}

// hides reports whether a message is a notification about a resource that the caller may not see.
func (l Lists) hides(m message.Message) bool {
	uri := m.Params.Get("uri")
	if l.Resources == nil || uri == nil || !strings.HasPrefix(strings.ToLower(m.Method), "notifications/resources/") {
		return false
	}
	name, isString := message.DecodeString(uri)
	return !isString || !l.Resources(name)
}

func (l Lists) result(text jsontext.Value) (jsontext.Value, error) {
	members, err := message.DecodeObject(text, // which refuses other spellings of these names
		"tools", "prompts", "resources", "resourceTemplates", "cacheScope", "ttlMs")
	if err != nil {
		return nil, err
	}
	visible := l
	if l.Record != nil {
		if visible.Tools, err = l.record(members); err != nil {
			return nil, err
		}
	}
	for _, list := range []struct {
		member, name string
		may          func(name string) bool
	}{
		{"tools", "name", visible.Tools},
		{"prompts", "name", visible.Prompts},
		{"resources", "uri", visible.Resources},
		{"resourceTemplates", "uriTemplate", visible.Resources},
	} {
		value := members.Get(list.member)
		if list.may == nil || !message.IsPresent(value) {
			continue
		}
		elements, err := named(value, list.name)
		if err != nil {
			return nil, err
		}
		members = members.With(list.member, shown(elements, list.may))
	}
	const private = `"private"`
	switch {
	case members.Get("cacheScope") != nil:
		members = members.With("cacheScope", private)
	case members.Get("ttlMs") != nil: // a missing scope is a public one
		members = append(members, message.Member{Name: "cacheScope", Value: jsontext.Value(private)})
	}
	return members.Encode(), nil
}

// record records the tools of a result, and returns which of them the caller may see: those that
// are as they were in the caller's first list. It does not record those that a policy hides, or
// whose names rules could not compare.
func (l Lists) record(result message.Members) (may func(name string) bool, err error) {
	value := result.Get("tools")
	if !message.IsPresent(value) {
		return l.Tools, nil
	}
	elements, err := named(value, "name")
	if err != nil {
		return nil, err
	}
	isVisible := func(name string) bool {
		_, ok := access.FoldName(name)
		return ok && (l.Tools == nil || l.Tools(name))
	}
	var listed toolset.List
	for _, tool := range elements {
		if isVisible(tool.name) {
			listed.Tools = append(listed.Tools, toolset.New(tool.name, definition(tool.text)))
		}
	}
	cursor, _ := message.DecodeString(result.Get("nextCursor"))
	listed.IsFirst, listed.More = l.IsFirstPage, cursor != ""
	pins, err := l.Record(listed)
	if err != nil {
		return nil, fmt.Errorf("recording a list of tools: %w", err)
	}
	permits := pins.Permits()
	return func(name string) bool { return isVisible(name) && permits(name) }, nil
}

// definition returns a tool in a canonical form, in which the order of required members, of values
// and of types does not count.
func definition(tool jsontext.Value) []byte {
	var value any
	if json.Unmarshal(tool, &value, jsontext.AllowInvalidUTF8(true)) != nil {
		return tool
	}
	sortSets(value)
	text, err := json.Marshal(value, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		return tool
	}
	return text
}

// sortSets sorts the lists of a JSON schema whose order has no meaning.
func sortSets(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			sortSets(element)
		}
	case map[string]any:
		for name, member := range value {
			sortSets(member)
			if set, isList := member.([]any); isList && slices.Contains([]string{"required", "enum", "type"}, name) {
				slices.SortFunc(set, func(a, b any) int {
					return strings.Compare(fmt.Sprintf("%T %v", a, a), fmt.Sprintf("%T %v", b, b))
				})
			}
		}
	}
}

// element is an element of a list, as it was written.
type element struct {
	name string
	text jsontext.Value
}

// named returns the elements of a list that have their name in this member, and leaves out all
// others.
func named(list jsontext.Value, member string) (found []element, err error) {
	var elements []jsontext.Value
	if json.Unmarshal(list, &elements, jsontext.AllowInvalidUTF8(true)) != nil {
		return nil, errors.New("a member of a result is not a list")
	}
	for _, text := range elements {
		members, err := message.DecodeObject(text, member)
		if err != nil {
			continue
		}
		if name, isString := message.DecodeString(members.Get(member)); isString {
			found = append(found, element{name, text})
		}
	}
	return found, nil
}

// shown returns a list of the elements that the caller may see.
func shown(elements []element, may func(name string) bool) string {
	var texts []string
	for _, one := range elements {
		if may(one.name) {
			texts = append(texts, string(one.text))
		}
	}
	return "[" + strings.Join(texts, ",") + "]"
}
