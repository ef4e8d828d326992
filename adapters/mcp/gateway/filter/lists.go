package filter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// Lists reports which names of each kind the caller may see. A nil function permits every name.
type Lists struct {
	Tools     func(name string) bool
	Prompts   func(name string) bool
	Resources func(uri string) bool // also for the templates of URIs
}

var errNoList = errors.New("a member of a result is not a list")

// Filter returns a JSON-RPC message, or a batch of them, without the elements that the caller may
// not see, in lists of tools, prompts, resources and resource templates. It also forbids shared
// caches to store results, because those differ between callers. All other bytes stay as they are.
// It goes by the shape of results, because a response can come on another stream than its request,
// and accepts spellings and duplicates of names that a client may accept. It drops notifications
// about resources that the caller may not see, and returns nil if nothing is left. It fails for a
// text that is not JSON.
func (l Lists) Filter(message []byte) ([]byte, error) {
	e := &editor{lists: l, text: message, tokens: jsonrpc.NewDecoder(message)}
	kept, err := e.messages()
	var syntax *jsontext.SyntacticError // its text quotes the message
	switch {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("a message of the MCP server is not valid JSON at byte %d", syntax.ByteOffset)
	case err != nil:
		return nil, err
	case !e.drops:
		return e.edited(), nil
	case len(kept) == 0:
		return nil, nil
	}
	return l.Filter(slices.Concat([]byte("["), bytes.Join(kept, []byte(",")), []byte("]")))
}

// shown are the members of results with lists, and the members that name their elements.
func (l Lists) shown(member string) (may func(string) bool, named string) {
	switch {
	case jsonrpc.IsMember(member, "tools"):
		return l.Tools, "name"
	case jsonrpc.IsMember(member, "prompts"):
		return l.Prompts, "name"
	case jsonrpc.IsMember(member, "resources"):
		return l.Resources, "uri"
	case jsonrpc.IsMember(member, "resourceTemplates"):
		return l.Resources, "uriTemplate"
	}
	return nil, ""
}

// editor copies a text with changes.
type editor struct {
	lists  Lists
	text   []byte
	tokens *jsontext.Decoder
	copied int64 // offset in text
	out    []byte
	drops  bool // a message is not shown
}

func (e *editor) replace(from, to int64, with []byte) {
	e.out = append(append(e.out, e.text[e.copied:from]...), with...)
	e.copied = to
}

func (e *editor) edited() []byte {
	if e.copied == 0 {
		return e.text
	}
	return append(e.out, e.text[e.copied:]...)
}

// messages edits each message, and returns the messages of a batch that are shown, unedited.
func (e *editor) messages() (kept [][]byte, err error) {
	if e.tokens.PeekKind() != '[' {
		_, err := e.message()
		return nil, errors.Join(err, e.end())
	}
	if _, err := e.tokens.ReadToken(); err != nil {
		return nil, err
	}
	for e.tokens.PeekKind() != ']' {
		from := e.tokens.InputOffset()
		shown, err := e.message()
		if err != nil {
			return nil, err
		}
		if shown {
			kept = append(kept, bytes.TrimLeft(e.text[from:e.tokens.InputOffset()], ", \t\r\n"))
		}
	}
	if _, err := e.tokens.ReadToken(); err != nil {
		return nil, err
	}
	return kept, e.end()
}

// end fails if there is data after the message.
func (e *editor) end() error {
	if len(bytes.TrimSpace(e.text[e.tokens.InputOffset():])) > 0 {
		return errors.New("there is data after the message")
	}
	return nil
}

// message edits a message, and reports whether it is shown.
func (e *editor) message() (shown bool, err error) {
	var about notification
	err = jsonrpc.EachMember(e.tokens, func(name string) error {
		switch {
		case jsonrpc.IsMember(name, "result"):
			return e.result()
		case jsonrpc.IsMember(name, "method"):
			return about.readMethod(e.tokens)
		case jsonrpc.IsMember(name, "params") && e.lists.Resources != nil:
			return about.readParams(e.tokens, e.lists.Resources)
		}
		return e.tokens.SkipValue()
	})
	shown = !about.isOfResource || !about.isHidden
	e.drops = e.drops || !shown
	return shown, err
}

const private = `"private"`

func (e *editor) result() error {
	var scoped, cached bool
	err := jsonrpc.EachMember(e.tokens, func(name string) error {
		may, named := e.lists.shown(name)
		switch {
		case may != nil:
			return e.list(may, named)
		case jsonrpc.IsMember(name, "cacheScope"):
			scoped = true
			return e.makePrivate()
		}
		cached = cached || jsonrpc.IsMember(name, "ttlMs")
		return e.tokens.SkipValue()
	})
	if err == nil && cached && !scoped { // a missing scope is a public one
		end := e.tokens.InputOffset() - 1
		e.replace(end, end, []byte(`,"cacheScope":`+private))
	}
	return err
}

func (e *editor) makePrivate() error {
	value, err := e.tokens.ReadValue()
	if end := e.tokens.InputOffset(); err == nil && string(value) != private {
		e.replace(end-int64(len(value)), end, []byte(private))
	}
	return err
}

func (e *editor) list(may func(string) bool, named string) error {
	switch e.tokens.PeekKind() {
	case 'n':
		return e.tokens.SkipValue()
	case '[':
	default:
		return errNoList
	}
	if _, err := e.tokens.ReadToken(); err != nil {
		return err
	}
	from, hides := e.tokens.InputOffset(), false
	var kept [][]byte
	for e.tokens.PeekKind() != ']' {
		element, err := e.tokens.ReadValue()
		if err != nil {
			return err
		}
		if !isShown(element, may, named) {
			hides = true
			continue
		}
		kept = append(kept, bytes.Clone(element))
	}
	_, err := e.tokens.ReadToken()
	if err == nil && hides {
		e.replace(from, e.tokens.InputOffset()-1, bytes.Join(kept, []byte(",")))
	}
	return err
}

// isShown reports whether an element has a name and the caller may see each name that a client
// could find in it.
func isShown(element []byte, may func(string) bool, named string) bool {
	tokens := jsonrpc.NewDecoder(element)
	if tokens.PeekKind() != '{' {
		return false
	}
	found, shown := false, true
	err := jsonrpc.EachMember(tokens, func(name string) error {
		if !jsonrpc.IsMember(name, named) {
			return tokens.SkipValue()
		}
		isText := tokens.PeekKind() == '"'
		if !isText {
			shown = false
			return tokens.SkipValue()
		}
		value, err := tokens.ReadToken()
		if err == nil {
			found, shown = true, shown && may(value.String())
		}
		return err
	})
	return err == nil && found && shown
}
