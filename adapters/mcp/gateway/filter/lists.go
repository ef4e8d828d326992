package filter

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

// Lists reports which names of each kind the caller may see. A nil function permits every name.
type Lists struct {
	Tools     func(name string) bool
	Prompts   func(name string) bool
	Resources func(uri string) bool // also for the templates of URIs
}

// list is a list in results, and the member that names its elements.
type list struct {
	member, named string
	may           func(name string) bool
}

func (l Lists) all() []list {
	return []list{
		{"tools", "name", l.Tools},
		{"prompts", "name", l.Prompts},
		{"resources", "uri", l.Resources},
		{"resourceTemplates", "uriTemplate", l.Resources},
	}
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
		if name, isString := message.DecodeString(members.Get(l.named)); isString && l.may(name) {
			shown = append(shown, string(element))
		}
	}
	return "[" + strings.Join(shown, ",") + "]", nil
}
