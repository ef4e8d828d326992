package filter

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// notification is what a message states about a resource. Its members can come in any order.
type notification struct {
	isOfResource bool
	isHidden     bool // names a resource that the caller may not see
}

func (n *notification) readMethod(tokens *jsontext.Decoder) error {
	if tokens.PeekKind() != '"' {
		return tokens.SkipValue()
	}
	method, err := tokens.ReadToken()
	if err != nil {
		return err
	}
	text := method.String()
	n.isOfResource = n.isOfResource || len(text) > jsonrpc.MaxName ||
		strings.HasPrefix(jsonrpc.FoldToolName(text), "notifications/resources/")
	return nil
}

func (n *notification) readParams(tokens *jsontext.Decoder, may func(uri string) bool) error {
	return jsonrpc.EachMember(tokens, func(name string) error {
		if !jsonrpc.IsMember(name, "uri") {
			return tokens.SkipValue()
		}
		if tokens.PeekKind() != '"' {
			n.isHidden = true
			return tokens.SkipValue()
		}
		uri, err := tokens.ReadToken()
		if err == nil && !may(uri.String()) {
			n.isHidden = true
		}
		return err
	})
}
