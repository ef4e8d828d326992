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
	"github.com/pasteport/pasteport/domain/oauth"
)

// Lists reports which names of each kind the caller may see. A nil function permits every name.
type Lists struct {
	Tools     func(name string) bool
	Prompts   func(name string) bool
	Resources func(uri string) bool // also for the templates of URIs

	// Record records each list of tools that the caller gets, and returns which of them the caller
	// may see; nil for all.
	Record      func(list oauth.ToolList) (oauth.ToolPins, error)
	IsFirstPage bool // the request was for the first page of the tools
}

// list is a list in results, and the member that names its elements.
type list struct {
	member, named string
	may           func(name string, element jsontext.Value) bool
}

func (l Lists) all() []list {
	return []list{
		{"tools", "name", byName(l.Tools)},
		{"prompts", "name", byName(l.Prompts)},
		{"resources", "uri", byName(l.Resources)},
		{"resourceTemplates", "uriTemplate", byName(l.Resources)},
	}
}

func byName(may func(name string) bool) func(string, jsontext.Value) bool {
	if may == nil {
		return nil
	}
	return func(name string, _ jsontext.Value) bool { return may(name) }
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
	if len(shown) == 0 {
		return nil, nil
	}
	return message.EncodeAll(shown, isBatch), nil
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
	members, err := message.DecodeObject(text,
		"tools", "prompts", "resources", "resourceTemplates", "cacheScope", "ttlMs")
	if err != nil {
		return nil, err
	}
	if members, err = l.record(members); err != nil {
		return nil, err
	}
	for _, one := range l.all() {
		if value := members.Get(one.member); one.may != nil && message.IsPresent(value) {
			shown, err := one.filter(value)
			if err != nil {
				return nil, err
			}
			members = members.With(one.member, shown)
		}
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

// record returns a result with the tools that are as they were in the first list of the caller. A
// policy hides its tools from the record too.
func (l Lists) record(result message.Members) (message.Members, error) {
	value := result.Get("tools")
	if l.Record == nil || !message.IsPresent(value) {
		return result, nil
	}
	var listed oauth.ToolList
	_, err := list{"tools", "name", func(name string, element jsontext.Value) bool {
		_, isUsual := access.FoldName(name)
		if isUsual && (l.Tools == nil || l.Tools(name)) {
			listed.Tools = append(listed.Tools, oauth.NewTool(name, definition(element)))
		}
		return false
	}}.filter(value)
	if err != nil {
		return nil, err
	}
	cursor, _ := message.DecodeString(result.Get("nextCursor"))
	listed.More = cursor != ""
	listed.IsWhole = l.IsFirstPage && !listed.More
	pins, err := l.Record(listed)
	if err != nil {
		return nil, fmt.Errorf("recording a list of tools: %w", err)
	}
	permits := pins.Permits()
	shown, err := list{"tools", "name", func(name string, _ jsontext.Value) bool {
		_, isUsual := access.FoldName(name)
		return isUsual && permits(name)
	}}.filter(value)
	return result.With("tools", shown), err
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

// filter returns the elements with a name that the caller may see.
func (l list) filter(value jsontext.Value) (string, error) {
	var elements []jsontext.Value
	if json.Unmarshal(value, &elements, jsontext.AllowInvalidUTF8(true)) != nil {
		return "", errors.New("a member of a result is not a list")
	}
	var shown []string
	for _, element := range elements {
		members, err := message.DecodeObject(element, l.named)
		if err != nil {
			continue
		}
		if name, isString := message.DecodeString(members.Get(l.named)); isString && l.may(name, element) {
			shown = append(shown, string(element))
		}
	}
	return "[" + strings.Join(shown, ",") + "]", nil
}
