package jsonrpc

import (
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Limits of what a message names, in bytes of Length. They hold before a name is folded or compared
// with a rule, because folding can make it 11 times as long, and each rule reads it again.
const (
	maxID     = 1 << 10
	maxMethod = 256
	MaxName   = 1 << 10  // of a tool or prompt
	MaxURI    = 8 << 10  // of a resource
	maxNames  = 64 << 10 // of all names and URIs in one message
	maxNamed  = 1000     // names and URIs in one message
)

// checkLengths refuses a message that names more than the limits allow.
func (m *Message) checkLengths() error {
	switch {
	case m.longMethod:
		return longError("method", maxMethod)
	case len(m.ID) > maxID:
		return longError("id", maxID)
	case len(m.Tools)+len(m.Prompts)+len(m.Resources) > maxNamed:
		return tooLong("the message names more than %d tools, prompts and resources", maxNamed)
	}
	sum := 0
	for _, kind := range []struct {
		names []string
		limit int
		text  string
	}{
		{m.Tools, MaxName, "the name of a tool"},
		{m.Prompts, MaxName, "the name of a prompt"},
		{m.Resources, MaxURI, "the URI of a resource"},
	} {
		for _, name := range kind.names {
			length := Length(name, kind.limit)
			if sum += length; length > kind.limit {
				return longError(kind.text, kind.limit)
			}
		}
	}
	if sum > maxNames {
		return longError("all tools, prompts and resources that the message names", maxNames)
	}
	return nil
}

func longError(of string, limit int) error { return tooLong(of+": more than %d bytes", limit) }

func tooLong(format string, limit int) error {
	return &messageError{rule: "G19", code: sdk.CodeInvalidParams, text: fmt.Sprintf(format, limit)}
}
