package jsonrpc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// messageError is the reason for refusing a message. Its text repeats nothing of the message,
// because it goes into logs and traces.
type messageError struct {
	status int    // 0 for 400
	rule   string // "" for the rule about messages in general
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

	ByName bool     // the message is valid, but names what its sender may not use
	Errors [][]byte // if ByName: JSON-RPC errors for the requests of the message
	batch  bool
}

// RefuseNames returns the refusal of a body that names what its sender may not use. Each of its
// requests gets the same error. The text is for the client only.
func RefuseNames(body []byte, rule string, code int64, text string) *Refusal {
	refused := Refuse(&messageError{rule: rule, code: code,
		text: "the caller may not use a tool, prompt or resource that the message names"}, body)
	refused.ByName = true
	found, batch := refusedIDs(body)
	refused.batch = batch
	for _, m := range found {
		if id := m.onlyID(body); id != nil && !m.isResponse() {
			refused.Errors = append(refused.Errors, ErrorFor(id, code, text))
		}
	}
	return refused
}

// ErrUnreadable is the error for a message that is valid here but not for the MCP server.
var ErrUnreadable error = &messageError{text: "it could not be read"}

// Refuse returns the refusal of a body for the error, with the ids that can be read from the body.
func Refuse(err error, body []byte) *Refusal {
	refused := &Refusal{messageError: *messageErrorOf(err)}
	found, batch := refusedIDs(body)
	if len(found) == 1 && !batch {
		refused.id = found[0].onlyID(body)
	}
	for _, m := range found {
		if id := m.onlyID(body); id != nil && m.isResponse() {
			refused.Answers = append(refused.Answers,
				ErrorFor(id, CodeRefused, "the client's answer was refused: "+refused.text))
		}
	}
	return refused
}

// Write answers with a JSON-RPC error.
func (m *Refusal) Write(w http.ResponseWriter) {
	if m.ByName {
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
func (m *Refusal) Trace(recorder *connection.Recorder) {
	recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, m.brokenRule(), m.text))
}

// refusedIDs returns the messages in a refused body, and nothing if it is not JSON.
func refusedIDs(body []byte) (found []Located, batch bool) {
	found, batch, err := Scan(body, maxBatch)
	if err != nil {
		return nil, batch
	}
	return found, batch
}

// onlyID returns the id of a message, nil for none or an ambiguous one.
func (m *Located) onlyID(body []byte) []byte {
	id := m.ID.Of(body)
	if m.ids != 1 || len(id) == 0 || len(id) > maxID || !utf8.Valid(id) || id[0] != '"' && id[0] != '-' &&
		(id[0] < '0' || id[0] > '9') {
		return nil
	}
	return id
}

// isResponse reports whether no server could read a message as a request.
func (m *Located) isResponse() bool { return !m.hasMethod && (m.Result.to > 0 || m.Error.to > 0) }
