package jsonrpc

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// addNames adds the prompts and resources that a request names. It goes by the beginning of the
// method, so that it also finds those of methods that a later revision adds.
func (r *reader) addNames(method string, sent parameters) error {
	switch {
	case strings.HasPrefix(method, promptMethods):
		if sent.name != nil {
			r.Prompts = append(r.Prompts, string(sent.name))
		}
		return nil
	case strings.HasPrefix(method, resourceMethods), refers(method):
		if sent.variant != "" {
			return r.errorAt("a member of params is another spelling of " + sent.variant)
		}
		if err := r.addURI(sent.uri); err != nil {
			return err
		}
		if err := r.addReference(sent.ref); err != nil {
			return err
		}
		return r.addSubscriptions(sent.notifications)
	}
	return nil
}

const (
	toolMethods     = "tools/"
	promptMethods   = "prompts/"
	resourceMethods = "resources/"
)

// refers reports whether a method can name a prompt or a resource in another
// member than name and uri.
func refers(method string) bool {
	return method == "completion/complete" || method == "subscriptions/listen"
}

func (r *reader) addURI(sent value) error {
	if sent.raw == nil {
		return nil
	}
	uri, err := r.within(sent).text("uri")
	r.Resources = append(r.Resources, string(uri))
	return err
}

// addReference adds the prompt and the resource of a reference. Its type may state another kind.
func (r *reader) addReference(sent value) error {
	if sent.raw == nil {
		return nil
	}
	inner := r.within(sent)
	return inner.members("ref", func(name []byte) error {
		switch string(name) {
		case "name":
			prompt, err := inner.text("name")
			r.Prompts = append(r.Prompts, string(prompt))
			return err
		case "uri":
			uri, err := inner.text("uri")
			r.Resources = append(r.Resources, string(uri))
			return err
		}
		if exact := variantOf(name, referring); exact != "" {
			return inner.errorAt("a member of ref is another spelling of " + exact)
		}
		return inner.tokens.SkipValue()
	})
}

// addSubscriptions adds the resources of subscriptions/listen.
func (r *reader) addSubscriptions(sent value) error {
	if sent.raw == nil {
		return nil
	}
	inner := r.within(sent)
	return inner.members("notifications", func(name []byte) error {
		if exact := variantOf(name, referring); exact != "" {
			return inner.errorAt("a member of notifications is another spelling of " + exact)
		}
		if string(name) != "resourceSubscriptions" || inner.tokens.PeekKind() == 'n' {
			return inner.tokens.SkipValue()
		}
		if inner.tokens.PeekKind() != '[' {
			return inner.errorAt("resourceSubscriptions is not a list")
		}
		_, err := inner.tokens.ReadToken()
		for err == nil && inner.tokens.PeekKind() != ']' {
			var uri []byte
			uri, err = inner.text("a resource")
			r.Resources = append(r.Resources, string(uri))
		}
		if err == nil {
			_, err = inner.tokens.ReadToken()
		}
		return err
	})
}

// within returns a reader of a value of the body, which is valid apart from unpaired surrogates.
func (r *reader) within(sent value) *reader {
	return &reader{
		Message: Message{Body: sent.raw}, base: sent.at,
		tokens: jsontext.NewDecoder(bytes.NewBuffer(sent.raw), jsontext.AllowInvalidUTF8(true)),
	}
}
