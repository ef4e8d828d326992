package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// message is a JSON-RPC message. Its text is passed on, so that nothing in it changes. The other
// fields with JSON are parts of the text, not copies.
type message struct {
	raw       []byte     // in one line
	id        jsonrpc.ID // the zero value for a notification
	number    int64      // of a call, instead of its id
	isRequest bool       // or notification
	method    string
	result    json.RawMessage
	isError   bool

	revision  []byte // in the metadata
	token     []byte // of the progress of a call
	progress  []byte // the token of a notification
	requestID []byte // of a cancellation
}

var errNoMessage = errors.New("the body is not a JSON-RPC message")

// parse returns the messages of a body or line: one, or those of a batch. It replaces the ends of
// lines between the parts of JSON by spaces.
func parse(body []byte) (messages []message, err error) {
	if !json.Valid(body) {
		return nil, errNoMessage
	}
	for i, b := range body { // a string of valid JSON has no such bytes
		if b == '\r' || b == '\n' {
			body[i] = ' '
		}
	}
	body = bytes.Trim(body, " \t")
	found, _, err := jsonrpc.Scan(body, math.MaxInt)
	if err != nil || len(found) == 0 {
		return nil, errNoMessage
	}
	for _, located := range found {
		m, err := newMessage(body, located)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func newMessage(body []byte, at jsonrpc.Located) (message, error) {
	id, err := jsonrpc.ParseID(at.ID.Of(body))
	switch {
	case string(at.Version.Of(body)) != `"2.0"`, at.IsCall && at.Method == "":
		return message{}, errNoMessage
	case err == nil && !at.IsCall && id.IsZero():
		err = errNoMessage
	}
	return message{
		raw:       at.Text.Of(body),
		id:        id,
		isRequest: at.IsCall,
		method:    at.Method,
		result:    at.Result.Of(body),
		isError:   jsonrpc.IsPresent(at.Error.Of(body)),
		revision:  at.Revision.Of(body),
		progress:  at.Progress.Of(body),
		token:     at.CallProgress.Of(body),
		requestID: at.RequestID.Of(body),
	}, err
}

func (m message) isCall() bool { return m.isRequest && !m.id.IsZero() }

func (m message) isResponse() bool { return !m.isRequest }

func (m message) isInitialize() bool { return m.isCall() && m.method == "initialize" }

// isStateless reports whether the message names its revision, as 2026-07-28 does.
func (m message) isStateless() bool { return m.isRequest && len(m.revision) > 0 }

const maxToken = 1 << 10

// progressToken returns the progress token of a call, as JSON, "" without one or for one that is
// too long to keep.
func (m message) progressToken() string {
	if len(m.token) <= maxToken {
		return string(m.token)
	}
	return ""
}

// cancels returns the id of the request that the message cancels.
func (m message) cancels() (jsonrpc.ID, bool) {
	if !m.isRequest || m.method != "notifications/cancelled" {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.ParseID(m.requestID)
	return id, err == nil && !id.IsZero()
}

// answers returns the number of the call that the message answers. Some programs answer a number
// with text.
func (m message) answers() (number int64, ok bool) {
	number, err := strconv.ParseInt(strings.TrimPrefix(m.id.Key, `"`), 10, 64)
	return number, err == nil
}

// forProgram returns the parts of a message of the client as the program gets it: with the number
// of a call instead of its id, and with a progress token that no other call has.
func (m message) forProgram() [][]byte {
	if !m.isCall() {
		return [][]byte{m.raw}
	}
	progress := m.progressToken()
	if progress != "" {
		progress = jsonrpc.Numbered(m.number, progress)
	}
	return jsonrpc.WithCall(m.raw, strconv.FormatInt(m.number, 10), progress)
}
