package mcp

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// deciding are the members that say what a message does. Some decoders take them in any case.
var deciding = []string{"jsonrpc", "id", "method", "params", "name", "_meta"}

// unambiguous reports whether every reader of JSON finds the same in a body: no member twice, anywhere, and none that decides in
// another case; neither invalid UTF-8 nor anything after the end. A batch holds messages and nothing else.
func unambiguous(body []byte) bool {
	if !jsontext.Value(body).IsValid() {
		return false
	}
	tokens := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(tokens)
	tokens.Reset(bytes.NewBuffer(body)) // which it reads in place
	defer tokens.Reset(nothing{})
	if tokens.PeekKind() != '[' {
		return clearMessage(tokens)
	}
	_, _ = tokens.ReadToken()
	for tokens.PeekKind() != ']' {
		if !clearMessage(tokens) {
			return false
		}
	}
	return true
}

// decoders keep their stacks and names for the next body, and nothing of the last.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(nothing{}) }}

// nothing is what a decoder reads that nobody uses, so that it keeps no body.
type nothing struct{}

// Read implements io.Reader.
func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// clearMessage reads one message; what the values hold is the upstream's affair, but for those that say what is to be done: many
// a server takes a list of one name for the name.
func clearMessage(tokens *jsontext.Decoder) bool {
	return clearMembers(tokens, func(name string) bool {
		switch kind := tokens.PeekKind(); {
		case name == "method" && kind != '"':
			return false
		case name == "params" && kind == '{':
			return clearMembers(tokens, func(name string) bool { return clearParameter(tokens, name) })
		case name == "params" && kind != 'n':
			return false
		}
		return tokens.SkipValue() == nil
	})
}

func clearParameter(tokens *jsontext.Decoder, name string) bool {
	switch kind := tokens.PeekKind(); {
	case name == "name" && kind != '"', name == "_meta" && kind != '{' && kind != 'n':
		return false
	}
	return tokens.SkipValue() == nil
}

// clearMembers reads an object, and each value with read.
func clearMembers(tokens *jsontext.Decoder, read func(name string) bool) bool {
	if tokens.PeekKind() != '{' {
		return false
	}
	_, _ = tokens.ReadToken()
	for tokens.PeekKind() != '}' {
		name, err := tokens.ReadToken()
		if err != nil || respelled(name.String()) || !read(name.String()) {
			return false
		}
	}
	_, err := tokens.ReadToken()
	return err == nil
}

func respelled(name string) bool {
	for _, exact := range deciding {
		if name != exact && strings.EqualFold(name, exact) {
			return true
		}
	}
	return false
}
