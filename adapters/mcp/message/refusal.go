package message

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/domain/attempt"
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

func tooMany(format string, limit int) error {
	return &messageError{rule: "G19", code: sdk.CodeInvalidParams, text: fmt.Sprintf(format, limit)}
}

// refusalOf maps an error of the decoder to a messageError.
func refusalOf(err error) error {
	if errors.As(err, new(*messageError)) {
		return err
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

// Refusal is a refused body.
type Refusal struct {
	messageError
	id      ID        // of the only call; the zero value in a batch or if it is not readable
	Answers []Message // JSON-RPC errors for the requests of the MCP server to which the body contains responses

	ByName bool   // the body is valid, but names what its sender may not use
	answer string // if ByName: the text for the client
}

// RefuseNames returns the refusal of a body that names what its sender may not use. The text is for
// the client only.
func RefuseNames(b Body, rule string, code int64, text string) *Refusal {
	return &Refusal{
		messageError: messageError{
			rule: rule,
			code: code,
			text: "the caller may not use a tool, prompt or resource that the message names",
		},
		id:     b.ID(),
		ByName: true,
		answer: text,
	}
}

// RefuseBatch returns the refusal of a batch where rules decide about each message.
func RefuseBatch(b Body) *Refusal {
	return refuse(&messageError{
		code: sdk.CodeInvalidRequest,
		text: "rules of this server decide about single messages: send no batch",
	}, b.Messages)
}

// Refuse returns the refusal of a body for the error of Read, with the ids that can be read from
// the text.
func Refuse(err error, text []byte) *Refusal {
	found, isBatch := decodeAnyway(text)
	refused := refuse(err, found)
	if len(found) == 1 && !isBatch {
		refused.id = found[0].ID
	}
	return refused
}

func refuse(err error, found []Message) *Refusal {
	refused := &Refusal{messageError: messageError{code: sdk.CodeInvalidRequest, text: err.Error()}}
	if known := new(messageError); errors.As(err, &known) {
		refused.messageError = *known
	}
	refused.Answers = errorsFor(found, "the client's answer was refused: "+refused.text)
	return refused
}

// RefuseAnswers returns a JSON-RPC error in the place of each answer of a server in a text that
// Decode refuses with an error.
func RefuseAnswers(err error, text []byte) []Message {
	found, isBatch, broken := newDecoder(text, true).messages()
	if broken != nil && !isBatch && found[0].Method == "" { // it breaks behind its id, as by NaN
		found[0].Error = []byte("{}") // so that it counts as an answer
	}
	return errorsFor(found, "the MCP server's answer was refused: "+err.Error())
}

func errorsFor(found []Message, reason string) (answers []Message) {
	for _, m := range found {
		if m.IsResponse() && !m.ID.IsZero() {
			answers = append(answers, ErrorFor(m.ID, CodeRefused, reason))
		}
	}
	return answers
}

// Write answers with a JSON-RPC error.
func (m *Refusal) Write(w http.ResponseWriter) {
	switch {
	case !m.ByName:
		status := cmp.Or(m.status, http.StatusBadRequest)
		WriteErrorFor(w, status, m.id, m.code,
			fmt.Sprintf("%s: %s (rule %s)", http.StatusText(status), m.text, m.brokenRule()))
	case m.id.IsZero(): // of a notification
		w.WriteHeader(http.StatusAccepted)
	default: // as an MCP server does that does not know the names
		WriteErrorFor(w, http.StatusOK, m.id, m.code, m.answer)
	}
}

// Trace records the refusal.
func (m *Refusal) Trace(recorder *attempt.Recorder) {
	recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, m.brokenRule(), m.text))
}
