package jsonrpc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// fault is why a message is refused. Its text repeats nothing of the message, because it goes into logs and traces.
type fault struct {
	status int    // 400 if it is 0
	rule   string // of the catalogue; U11 if it is ""
	code   int64  // of JSON-RPC
	what   string
}

func (f *fault) Error() string { return f.what }

func (f *fault) brokenRule() string { return cmp.Or(f.rule, "U11") }

// faultOf says in plain words why a body could not be read.
func faultOf(err error) *fault {
	var known *fault
	if errors.As(err, &known) {
		return known
	}
	found := &fault{code: sdk.CodeParseError, what: "the body is not valid JSON"}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		found = &fault{code: sdk.CodeInvalidRequest, what: "a member name stands twice in one object"}
	}
	if syntactic := new(jsontext.SyntacticError); errors.As(err, &syntactic) {
		found.what += fmt.Sprintf(" (at byte %d)", syntactic.ByteOffset)
	}
	return found
}

// Refusal is a message that is not passed on.
type Refusal struct {
	fault
	id      []byte   // of the message, nil in a batch and when it could not be read
	Answers [][]byte // errors for the requests of the MCP server that the message was to answer
}

// ErrUnreadable refuses a message that the MCP server cannot read, although it is valid here.
var ErrUnreadable error = &fault{what: "it could not be read"}

// Refuse reads from the body what the error leaves readable.
func Refuse(err error, body []byte) *Refusal {
	refused := &Refusal{fault: *faultOf(err)}
	found, batch := salvage(body)
	if len(found) == 1 && !batch {
		refused.id = found[0].id
	}
	for _, one := range found {
		if one.answers && one.id != nil {
			refused.Answers = append(refused.Answers, errorFor(one.id, CodeRefused, "the client's answer was refused: "+refused.what))
		}
	}
	return refused
}

// Write tells the client which message was refused, and why.
func (m *Refusal) Write(w http.ResponseWriter) {
	status := cmp.Or(m.status, http.StatusBadRequest)
	WriteErrorFor(w, status, m.id, m.code, fmt.Sprintf("%s: %s (rule %s)", http.StatusText(status), m.what, m.brokenRule()))
}

// Trace records the refusal.
func (m *Refusal) Trace(recorder *trace.Recorder) {
	recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, m.brokenRule(), m.what))
}

// salvaged is the id and the kind of a refused message, where they could be read.
type salvaged struct {
	id      []byte // nil when it has none, or one that could be read in two ways
	answers bool   // a request of the MCP server, instead of being one
}

// salvage reads the messages of a refused body: a duplicate, say, does not hide their ids. It finds nothing in what is not JSON at all.
func salvage(body []byte) (found []salvaged, batch bool) {
	tokens := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if batch = tokens.PeekKind() == '['; batch {
		_, _ = tokens.ReadToken()
	}
	for kind := tokens.PeekKind(); kind != ']'; kind = tokens.PeekKind() {
		one, err := salvageOne(tokens, body)
		if found = append(found, one); err != nil || len(found) > maxBatch {
			return nil, batch
		}
		if !batch {
			break
		}
	}
	if batch {
		_, _ = tokens.ReadToken()
	}
	if _, err := tokens.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder returns it as it is
		return nil, batch
	}
	return found, batch
}

// salvageOne reads one message.
func salvageOne(tokens *jsontext.Decoder, body []byte) (one salvaged, err error) {
	if tokens.PeekKind() != '{' {
		return one, tokens.SkipValue()
	}
	if _, err := tokens.ReadToken(); err != nil {
		return one, err
	}
	var ids int
	var asks bool
	for tokens.PeekKind() != '}' {
		token, err := tokens.ReadToken()
		if err != nil {
			return one, err
		}
		name := token.String() // before the next read voids the token
		kind := tokens.PeekKind()
		value, err := tokens.ReadValue()
		if err != nil {
			return one, err
		}
		switch {
		case bytes.EqualFold(joined([]byte(name)), []byte("id")):
			if ids++; name == "id" && (kind == '"' || kind == '0') && utf8.Valid(value) {
				end := tokens.InputOffset()
				one.id = body[end-int64(len(value)) : end]
			}
		case bytes.EqualFold(joined([]byte(name)), []byte("method")):
			asks = true
		case name == "result", name == "error":
			one.answers = true
		}
	}
	if ids > 1 {
		one.id = nil
	}
	one.answers = one.answers && !asks
	_, err = tokens.ReadToken()
	return one, err
}
