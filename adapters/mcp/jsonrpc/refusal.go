package jsonrpc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// messageError is the reason for refusing a message. Its text repeats nothing of the message,
// because it goes into logs and traces.
type messageError struct {
	status int    // 0 for 400
	rule   string // "" for U11
	code   int64  // of JSON-RPC
	text   string
}

func (e *messageError) Error() string { return e.text }

func (e *messageError) brokenRule() string { return cmp.Or(e.rule, "U11") }

// messageErrorOf maps an error of the decoder to a messageError.
func messageErrorOf(err error) *messageError {
	var known *messageError
	if errors.As(err, &known) {
		return known
	}
	found := &messageError{code: sdk.CodeParseError, text: "the body is not valid JSON"}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		found = &messageError{code: sdk.CodeInvalidRequest, text: "an object has two members with the same name"}
	}
	if syntactic := new(jsontext.SyntacticError); errors.As(err, &syntactic) {
		found.text += fmt.Sprintf(" (at byte %d)", syntactic.ByteOffset)
	}
	return found
}

// Refusal is a refused message.
type Refusal struct {
	messageError
	id      []byte   // of the message; nil in a batch or if it is not readable
	Answers [][]byte // JSON-RPC errors for the requests of the MCP server to which the message contains responses

	Readable bool     // the message was refused for what it names
	Errors   [][]byte // of a readable message: JSON-RPC errors for its requests
	batch    bool
}

// RefuseNames returns the refusal of a body that names what its sender may not use. Each of its
// requests gets the same error. The text is for the client only.
func RefuseNames(body []byte, rule string, code int64, text string) *Refusal {
	refused := Refuse(&messageError{rule: rule, code: code,
		text: "the caller may not use a tool, prompt or resource that the message names"}, body)
	refused.Readable = true
	found, batch := scanIDs(body)
	refused.batch = batch
	for _, m := range found {
		if !m.isResponse && m.id != nil {
			refused.Errors = append(refused.Errors, ErrorFor(m.id, code, text))
		}
	}
	return refused
}

// ErrUnreadable is the error for a message that is valid here but not for the MCP server.
var ErrUnreadable error = &messageError{text: "it could not be read"}

// Refuse returns the refusal of a body for the error, with the ids that can be read from the body.
func Refuse(err error, body []byte) *Refusal {
	refused := &Refusal{messageError: *messageErrorOf(err)}
	found, batch := scanIDs(body)
	if len(found) == 1 && !batch {
		refused.id = found[0].id
	}
	for _, m := range found {
		if m.isResponse && m.id != nil {
			refused.Answers = append(refused.Answers,
				ErrorFor(m.id, CodeRefused, "the client's answer was refused: "+refused.text))
		}
	}
	return refused
}

// Write answers with a JSON-RPC error.
func (m *Refusal) Write(w http.ResponseWriter) {
	if m.Readable {
		m.writeErrors(w)
		return
	}
	status := cmp.Or(m.status, http.StatusBadRequest)
	WriteErrorFor(w, status, m.id, m.code,
		fmt.Sprintf("%s: %s (rule %s)", http.StatusText(status), m.text, m.brokenRule()))
}

// writeErrors answers as an MCP server does that does not know the names.
func (m *Refusal) writeErrors(w http.ResponseWriter) {
	if len(m.Errors) == 0 { // notifications
		w.WriteHeader(http.StatusAccepted)
		return
	}
	body := bytes.Join(m.Errors, []byte(","))
	if m.batch {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// Trace records the refusal.
func (m *Refusal) Trace(recorder *trace.Recorder) {
	recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, m.brokenRule(), m.text))
}

// messageID is the id of a refused message.
type messageID struct {
	id         []byte // nil for none or an ambiguous one
	isResponse bool
}

// scanIDs returns the ids of the messages in a refused body, and nothing if it is not JSON. It
// tolerates duplicate names and invalid UTF-8.
func scanIDs(body []byte) (found []messageID, batch bool) {
	tokens := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if batch = tokens.PeekKind() == '['; batch {
		_, _ = tokens.ReadToken()
	}
	for kind := tokens.PeekKind(); kind != ']'; kind = tokens.PeekKind() {
		m, err := scanID(tokens, body)
		if found = append(found, m); err != nil || len(found) > maxBatch {
			return nil, batch
		}
		if !batch {
			break
		}
	}
	if batch {
		_, _ = tokens.ReadToken()
	}
	if _, err := tokens.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder does not wrap it
		return nil, batch
	}
	return found, batch
}

func scanID(tokens *jsontext.Decoder, body []byte) (m messageID, err error) {
	if tokens.PeekKind() != '{' {
		return m, tokens.SkipValue()
	}
	if _, err := tokens.ReadToken(); err != nil {
		return m, err
	}
	var ids int
	var hasMethod bool
	for tokens.PeekKind() != '}' {
		token, err := tokens.ReadToken()
		if err != nil {
			return m, err
		}
		name := token.String() // before the next read, which invalidates the token
		kind := tokens.PeekKind()
		value, err := tokens.ReadValue()
		if err != nil {
			return m, err
		}
		switch {
		case IsMember(name, "id"):
			if ids++; name == "id" && (kind == '"' || kind == '0') && len(value) <= maxID && utf8.Valid(value) {
				end := tokens.InputOffset()
				m.id = body[end-int64(len(value)) : end]
			}
		case IsMember(name, "method"):
			hasMethod = true
		case name == "result", name == "error":
			m.isResponse = true
		}
	}
	if ids > 1 {
		m.id = nil
	}
	m.isResponse = m.isResponse && !hasMethod
	_, err = tokens.ReadToken()
	return m, err
}
