package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Body is the body of a POST. The zero value is a request without one.
type Body struct {
	Messages []Message // one, or those of a batch; none if it could not be read
	IsBatch  bool
	Names    Names
	Refused  *Refusal // nil for a body that is passed on
}

// Names are what the calls of a body name. A call of a tool without a name has an empty one.
type Names struct {
	Tools, Prompts []string
	Resources      []string // URIs, and the templates of completions
}

// maxNames is the maximum number of names in a body. Each is compared with each rule.
const maxNames = 1000

// maxDepth is deeper than any schema, and protects recursive decoders.
const maxDepth = 64

// maxBodyMembers is the maximum number of members of all objects in a body. Each takes some 500
// bytes while it is checked for duplicates and sorted.
const maxBodyMembers = 100_000

// Read reads the body of a POST with these headers. A header that repeats the method or the name of
// a call has to agree with the body, because a server may go by either. With an error, the body has
// what was read before it.
func Read(header http.Header, text []byte) (b Body, err error) {
	switch {
	case !isJSON(header.Get("Content-Type")):
		return b, &messageError{
			status: http.StatusUnsupportedMediaType,
			code:   sdk.CodeInvalidRequest,
			text:   "send application/json",
		}
	case len(bytes.TrimLeft(text, " \t\r\n")) == 0:
		return b, &messageError{code: sdk.CodeParseError, text: "the body is empty"}
	case bytes.HasPrefix(text, ByteOrderMark):
		return b, &messageError{code: sdk.CodeParseError, text: "the body begins with a byte order mark"}
	case !utf8.Valid(text):
		return b, &messageError{code: sdk.CodeParseError, text: "the body is not valid UTF-8"}
	}
	if err := checkShape(text); err != nil {
		return b, err
	}
	if b.Messages, b.IsBatch, err = Decode(text); err != nil {
		return b, err
	}
	if b.IsBatch && header.Get(VersionHeader) > "2025-03-26" { // the last revision with batches
		return b, &messageError{code: sdk.CodeInvalidRequest, text: "this revision of MCP has no batches"}
	}
	for _, m := range b.Messages {
		if err := b.Names.add(m); err != nil {
			return b, err
		}
	}
	return b, b.checkHeaders(header)
}

func isJSON(contentType string) bool {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(parameters["charset"])
	return err == nil && mediaType == "application/json" && (charset == "" || charset == "utf-8" || charset == "utf8")
}

// checkShape limits the depth and the members of a text before it is decoded.
func checkShape(text []byte) error {
	depth, members, isQuoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case isQuoted && c == '\\':
			i++
		case c == '"':
			isQuoted = !isQuoted
		case isQuoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return tooMany("the body nests deeper than %d levels", maxDepth)
			}
		case c == '}', c == ']':
			depth--
		case c == ':':
			if members++; members > maxBodyMembers {
				return tooMany("the body has more than %d members", maxBodyMembers)
			}
		}
	}
	return nil
}

// NamesIn returns what the params of a method name, without empty names.
func NamesIn(method string, params jsontext.Value) (n Names, err error) {
	m := Message{Method: method}
	if m.Params, err = decodeOptional(params); err == nil {
		err = n.add(m)
	}
	for _, names := range []*[]string{&n.Tools, &n.Prompts, &n.Resources} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return name == "" })
	}
	return n, err
}

// add adds the names of a message. It goes by the beginning of the method, so that it also finds
// those of methods that a later revision adds.
func (n *Names) add(m Message) (err error) {
	kind, _, _ := strings.Cut(strings.ToLower(m.Method), "/")
	switch kind {
	case "tools":
		if m.Method == "tools/call" && m.Params.Get("name") == nil {
			n.Tools = append(n.Tools, "")
		}
		err = addString(&n.Tools, m.Params.Get("name"), "name")
	case "prompts":
		err = addString(&n.Prompts, m.Params.Get("name"), "name")
	case "resources":
		err = addString(&n.Resources, m.Params.Get("uri"), "uri")
	case "completion":
		var ref Members // names a prompt, a resource or both, whatever its type says
		if ref, err = decodeOptional(m.Params.Get("ref"), ofRef...); err == nil {
			err = cmp.Or(addString(&n.Prompts, ref.Get("name"), "name"), addString(&n.Resources, ref.Get("uri"), "uri"))
		}
	case "subscriptions":
		var listen Members
		var uris []json.RawMessage
		listen, err = decodeOptional(m.Params.Get("notifications"), ofListen...)
		if list := listen.Get("resourceSubscriptions"); IsPresent(list) && json.Unmarshal(list, &uris) != nil {
			text := "resourceSubscriptions is not a list"
			err = &messageError{code: sdk.CodeInvalidRequest, text: text}
		}
		for _, uri := range uris {
			err = cmp.Or(err, addString(&n.Resources, jsontext.Value(uri), "a URI in resourceSubscriptions"))
		}
	}
	if err == nil && len(n.Tools)+len(n.Prompts)+len(n.Resources) > maxNames {
		err = tooMany("the message names more than %d tools, prompts and resources", maxNames)
	}
	return err
}

// addString adds a value, unless it is absent.
func addString(names *[]string, value jsontext.Value, what string) error {
	if value == nil {
		return nil
	}
	name, ok := DecodeString(value)
	if !ok {
		text := what + " is not a string that all parsers read alike"
		return &messageError{code: sdk.CodeInvalidRequest, text: text}
	}
	*names = append(*names, name)
	return nil
}

// decodeOptional returns the members of an object, nil for none and for null.
func decodeOptional(text jsontext.Value, known ...string) (Members, error) {
	if !IsPresent(text) {
		return nil, nil
	}
	return DecodeObject(text, known...)
}

// IsPresent reports whether a member has a value other than null.
func IsPresent(value jsontext.Value) bool { return len(value) > 0 && value.Kind() != 'n' }

// Only returns the only message, the zero value for a batch or a body without a message.
func (b Body) Only() Message {
	if b.IsBatch || len(b.Messages) != 1 {
		return Message{}
	}
	return b.Messages[0]
}

// ID returns the id of the only call, the zero value for none.
func (b Body) ID() ID {
	if only := b.Only(); only.IsCall() {
		return only.ID
	}
	return ID{}
}

// Has reports whether a message has the method.
func (b Body) Has(method string) bool { return b.count(method) > 0 }

func (b Body) count(method string) (count int) {
	for _, m := range b.Messages {
		if m.Method == method {
			count++
		}
	}
	return count
}

// IsStateless reports whether a message names its revision, as those of FirstStateless do.
func (b Body) IsStateless() bool { return slices.ContainsFunc(b.Messages, Message.IsStateless) }

// Listens reports whether the response is a long stream.
func (b Body) Listens() bool { return b.Has("subscriptions/listen") }

// Calls returns the number of calls of tools. A body that names tools only in other methods counts
// as one call, because a server may call them.
func (b Body) Calls() int { return max(b.count("tools/call"), min(len(b.Names.Tools), 1)) }

// Arguments returns the arguments of all messages that may call a tool, empty for none.
func (b Body) Arguments() (all [][]byte) {
	for _, m := range b.Messages {
		if arguments := m.Params.Get("arguments"); arguments != nil || strings.HasPrefix(m.Method, "tools/") {
			all = append(all, arguments)
		}
	}
	return all
}

// Encode returns the text of the messages, nil for none.
func (b Body) Encode() []byte {
	switch {
	case len(b.Messages) == 0:
		return nil
	case !b.IsBatch:
		return b.Messages[0].Encode()
	}
	var texts [][]byte
	for _, m := range b.Messages {
		texts = append(texts, m.Encode())
	}
	return slices.Concat([]byte("["), bytes.Join(texts, []byte(",")), []byte("]"))
}

// SetOn makes the body that of a request.
func (b Body) SetOn(r *http.Request) {
	text := b.Encode()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// Request is a request or notification of a body, as the audit describes it.
type Request struct {
	Method    string
	Name      string // of the tool or prompt
	Arguments []byte // canonical (RFC 8785); nil for none
}

// Requests returns the requests and notifications of the body. A server may also call a tool that a
// notification names.
func (b Body) Requests() (found []Request) {
	for _, m := range b.Messages {
		if m.Method == "" {
			continue
		}
		request := Request{Method: m.Method}
		switch m.Method {
		case "tools/call", "prompts/get":
			request.Name, _ = DecodeString(m.Params.Get("name"))
			request.Arguments = Canonical(m.Params.Get("arguments"))
		case "resources/read":
			uri, _ := DecodeString(m.Params.Get("uri"))
			request.Arguments = ResourceArguments(uri)
		}
		found = append(found, request)
	}
	return found
}

// ResourceArguments returns the canonical arguments of resources/read. The URI counts as an
// argument and not as a name, because it may hold a secret.
func ResourceArguments(uri string) []byte {
	raw, _ := json.Marshal(map[string]string{"uri": uri}) // strings always encode
	return Canonical(raw)
}
