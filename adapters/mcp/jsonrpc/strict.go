package jsonrpc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readStrict parses a body, and refuses one in which JSON parsers could find different calls: with
// duplicate names, variants of significant names, invalid UTF-8, data after the message, or batch
// elements that are not messages. It refuses unpaired surrogates in names and in significant
// values, and accepts them in other values, because clients produce them when they truncate a text.
func readStrict(body []byte) (Message, error) {
	m := Message{Body: body}
	text, err := normalize(body)
	if err != nil {
		return m, err
	}
	s := &scan{text: body, isStrict: true, tokens: jsontext.NewDecoder(bytes.NewBuffer(text))} // reads in place
	found, batch, err := s.messages(maxBatch)
	m.addAll(found, batch, err)
	if err != nil {
		return m, messageErrorOf(err)
	}
	if !m.Decoded {
		return m, &messageError{code: sdk.CodeInvalidRequest, text: "the batch is empty"}
	}
	for i := range found {
		m.methods = append(m.methods, found[i].Method)
		if err := m.addNames(&found[i]); err != nil {
			return m, messageErrorOf(err)
		}
	}
	return m, m.checkLengths()
}

// normalize returns the body without unpaired surrogates in values, and with the same offsets. It
// refuses an empty body and one in another encoding than UTF-8.
func normalize(body []byte) ([]byte, error) {
	switch {
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return nil, &messageError{code: sdk.CodeParseError, text: "the body is empty"}
	case bytes.HasPrefix(body, ByteOrderMark):
		return nil, &messageError{code: sdk.CodeParseError, text: "the body begins with a byte order mark"}
	case !utf8.Valid(body):
		return nil, &messageError{code: sdk.CodeParseError, text: "the body is not valid UTF-8"}
	case tooDeep(body):
		return nil, &messageError{code: sdk.CodeInvalidRequest,
			text: fmt.Sprintf("the body nests deeper than %d levels", maxDepth)}
	}
	return replaceSurrogates(body)
}

const (
	toolMethods     = "tools/"
	promptMethods   = "prompts/"
	resourceMethods = "resources/"
)

// refers reports whether a method can name a prompt or a resource in another member than name and
// uri.
func refers(method string) bool {
	return method == "completion/complete" || method == "subscriptions/listen"
}

// addNames adds the prompts and resources that a message names. It goes by the beginning of the
// method, so that it also finds those of methods that a later revision adds.
func (m *Message) addNames(found *Located) error {
	switch {
	case strings.HasPrefix(found.Method, promptMethods):
		m.Prompts = append(m.Prompts, found.Names...)
		return nil
	case !strings.HasPrefix(found.Method, resourceMethods) && !refers(found.Method):
		return nil
	case found.variant != "":
		return &messageError{code: sdk.CodeInvalidRequest,
			text: "a member of params is another spelling of " + found.variant}
	}
	for _, member := range []struct {
		at  Span
		add func(s *scan) error
	}{
		{found.uri, m.addResource},
		{found.ref, m.addReference},
		{found.notifications, m.addSubscriptions},
	} {
		text := member.at.Of(m.Body) // valid apart from unpaired surrogates
		if len(text) == 0 {
			continue
		}
		err := member.add(&scan{
			text:     text,
			tokens:   jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true)),
			isStrict: true,
			base:     member.at.from,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Message) addResource(s *scan) error {
	uri, _, err := s.string("uri")
	m.Resources = append(m.Resources, uri)
	return err
}

// addReference adds the prompt and the resource of a reference. Its type may state another kind.
func (m *Message) addReference(s *scan) error {
	return s.members("ref", func(name string) error {
		switch name {
		case "name":
			prompt, _, err := s.string("name")
			m.Prompts = append(m.Prompts, prompt)
			return err
		case "uri":
			return m.addResource(s)
		}
		if exact := variantOf(name, referring); exact != "" {
			return s.errorAt(s.start(), "a member of ref is another spelling of "+exact)
		}
		return s.tokens.SkipValue()
	})
}

// addSubscriptions adds the resources of subscriptions/listen.
func (m *Message) addSubscriptions(s *scan) error {
	return s.members("notifications", func(name string) error {
		if exact := variantOf(name, referring); exact != "" {
			return s.errorAt(s.start(), "a member of notifications is another spelling of "+exact)
		}
		if name != "resourceSubscriptions" || s.tokens.PeekKind() == 'n' {
			return s.tokens.SkipValue()
		}
		if s.tokens.PeekKind() != '[' {
			return s.errorAt(s.start(), "resourceSubscriptions is not a list")
		}
		_, err := s.tokens.ReadToken()
		for err == nil && s.tokens.PeekKind() != ']' {
			err = m.addResource(s)
		}
		if err == nil {
			_, err = s.tokens.ReadToken()
		}
		return err
	})
}
