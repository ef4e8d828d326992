package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ID is the id of a call as its client has chosen it. Some clients give all their calls the same
// one, so an MCP server in this process or in a program gets ids of our own, and the client gets
// its own back.
type ID struct {
	Text string // as the client has written it; "" for no id
	Key  string // equal for two spellings of one id
}

// Errors of ParseID.
var (
	ErrNoID   = errors.New("the id of a message is neither a number nor a string")
	ErrLongID = errors.New("the id of a message is too long: choose one of at most 1 KiB")
)

// maxExact is the first number that not all programs can tell from the next.
const maxExact = 1 << 53

// ParseID returns the id of a message. It keeps fractions and large numbers, which the types of the
// SDK do not.
func ParseID(text json.RawMessage) (ID, error) {
	switch {
	case len(text) == 0 || string(text) == "null":
		return ID{}, nil
	case len(text) > maxID:
		return ID{}, ErrLongID
	}
	id := ID{Text: string(text), Key: string(text)}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return ID{}, ErrNoID
	}
	switch value := value.(type) {
	case string:
		id.Key = `"` + value
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < maxExact {
			id.Key = strconv.FormatInt(int64(value), 10)
		}
	default:
		return ID{}, ErrNoID
	}
	return id, nil
}

// IsZero reports whether a message has no id.
func (id ID) IsZero() bool { return id.Text == "" }

// unknown is the number of no call.
const unknown = -1

// Numbered returns a JSON string of our own instead of an id or a progress token, from which
// Unnumbered reads it back, also after the call was answered.
func Numbered(number int64, text string) string {
	return `"` + strconv.FormatInt(number, 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(text)) + `"`
}

// Unnumbered returns what Numbered was called with, and false for any other value.
func Unnumbered(raw []byte) (number int64, text string, ok bool) {
	if len(raw) > 3*maxID || json.Unmarshal(raw, &text) != nil {
		return 0, "", false
	}
	before, after, found := strings.Cut(text, ".")
	number, err := strconv.ParseInt(before, 10, 64)
	decoded, noText := base64.RawURLEncoding.Strict().DecodeString(after)
	if !found || err != nil || noText != nil || !json.Valid(decoded) || bytes.ContainsAny(decoded, "\r\n") {
		return 0, "", false
	}
	return number, string(decoded), true
}

// Renumber returns the messages of a body with numbered ids instead of those of calls, and of
// those that cancellations name. A body that cannot be read is returned as it is.
func (s *Sequence) Renumber(body []byte) [][]byte {
	found, _, err := Scan(body, math.MaxInt)
	if err != nil {
		return [][]byte{body}
	}
	var edits []edit
	for _, m := range found {
		id, err := ParseID(m.ID.Of(body))
		if err == nil && !id.IsZero() && m.Method != "" {
			edits = append(edits, edit{m.ID, Numbered(s.numberOf(m.Method, id), id.Text)})
		}
		if m.Method != cancellation {
			continue
		}
		if id, err := ParseID(m.RequestID.Of(body)); err == nil && !id.IsZero() {
			call, known := s.cancelled(id, func(int64) bool { return false })
			if !known {
				call.number = unknown
			}
			edits = append(edits, edit{m.RequestID, Numbered(call.number, cmp.Or(call.text, id.Text))})
		}
	}
	return splice(body, edits)
}

// numberOf returns 0 for initialize, which comes before a session has its Sequence, and
// which cannot be cancelled.
func (s *Sequence) numberOf(method string, id ID) int64 {
	if method == "initialize" {
		return 0
	}
	return s.Next(id)
}

const cancellation = "notifications/cancelled"

// Restore returns a message of the server, or an event with it, with the id of the client in place
// of a numbered one.
func Restore(text []byte) []byte {
	at := 0
	if len(text) > 0 && text[0] != '{' {
		found := bytes.Index(text, []byte("data: {"))
		if found < 0 {
			return text
		}
		at = found + len("data: ")
	}
	m, _ := locateHead(text[at:])
	if _, id, ok := Unnumbered(m.ID.Of(text[at:])); ok && m.Method == "" {
		return bytes.Join(splice(text, []edit{{Span{at + m.ID.from, at + m.ID.to}, id}}), nil)
	}
	return text
}

// WithID returns a copy of a message with another id.
func WithID(text []byte, id string) []byte {
	return bytes.Join(splice(text, []edit{{locate(text).ID, id}}), nil)
}

// WithProgress returns a copy of a notification of progress with another token.
func WithProgress(text []byte, token string) []byte {
	return bytes.Join(splice(text, []edit{{locate(text).Progress, token}}), nil)
}

// WithCall returns a call with another id, and another progress token if it has one.
func WithCall(text []byte, id, progress string) [][]byte {
	m := locate(text)
	return splice(text, []edit{{m.ID, id}, {m.CallProgress, progress}})
}

// WithRequestID returns a cancellation of another call.
func WithRequestID(text []byte, id string) [][]byte {
	return splice(text, []edit{{locate(text).RequestID, id}})
}

// edit replaces a value.
type edit struct {
	at   Span
	text string
}

// splice returns the parts of a text with edits, without a copy of the rest.
func splice(text []byte, edits []edit) (parts [][]byte) {
	slices.SortFunc(edits, func(a, b edit) int { return a.at.from - b.at.from })
	done := 0
	for _, e := range edits {
		if e.at.to > 0 && e.text != "" {
			parts = append(parts, text[done:e.at.from], []byte(e.text))
			done = e.at.to
		}
	}
	return append(parts, text[done:])
}
