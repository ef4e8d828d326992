package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
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

// Sequence numbers the calls of one session.
type Sequence struct {
	mu     sync.Mutex
	last   int64
	recent []recentCall // a ring of the last calls
}

// recentCall is the number of a call, and its id.
type recentCall struct {
	key    uint64 // a hash
	text   string // "" for a long one
	number int64
}

// maxRecentID is longer than a UUID with its quotes.
const maxRecentID = 64

// maxRecent is the number of calls that a cancellation can name. Every session has as many.
const maxRecent = 100

var idSeed = maphash.MakeSeed()

// Next returns the number of the next call.
func (s *Sequence) Next(id ID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	call := recentCall{maphash.String(idSeed, id.Key), id.Text, s.last}
	if len(id.Text) > maxRecentID {
		call.text = ""
	}
	if len(s.recent) < maxRecent {
		s.recent = append(s.recent, call)
	} else {
		s.recent[(s.last-1)%maxRecent] = call
	}
	return s.last
}

// Cancelled returns the number of the call that a cancellation of the id means, which may have been
// answered. A client that repeats its ids leaves open which of its calls it means, and a late
// cancellation must not hit the next one. So it then means the newest call that isGone reports as
// one whose client has gone, or none: a wrong answer costs more than a call that runs to its end.
func (s *Sequence) Cancelled(id ID, isGone func(number int64) bool) (number int64, ok bool) {
	call, ok := s.cancelled(id, isGone)
	return call.number, ok
}

func (s *Sequence) cancelled(id ID, isGone func(number int64) bool) (recentCall, bool) {
	calls := s.withID(id)
	if len(calls) == 1 {
		return calls[0], true
	}
	for _, call := range slices.Backward(calls) {
		if isGone(call.number) {
			return call, true
		}
	}
	return recentCall{}, false
}

// withID returns the recent calls with an id, the newest last.
func (s *Sequence) withID(id ID) (calls []recentCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := maphash.String(idSeed, id.Key)
	for _, call := range s.recent {
		if call.key == wanted {
			calls = append(calls, call)
		}
	}
	slices.SortFunc(calls, func(a, b recentCall) int { return cmp.Compare(a.number, b.number) })
	return calls
}

// unknown is the number of no call.
const unknown = -1

// Numbered returns a JSON string of our own in place of an id or a progress token, from which
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
	decoded, noText := base64.RawURLEncoding.DecodeString(after)
	if !found || err != nil || noText != nil || !json.Valid(decoded) || bytes.ContainsAny(decoded, "\r\n") {
		return 0, "", false
	}
	return number, string(decoded), true
}

// Renumber returns the messages of a body with numbered ids in place of those of calls, and of
// those that cancellations name. A body that cannot be read is returned as it is.
func (s *Sequence) Renumber(body []byte) [][]byte {
	var edits []edit
	for _, m := range locate(body) {
		id, err := ParseID(m.id.of(body))
		if err == nil && !id.IsZero() && m.method != "" {
			edits = append(edits, edit{m.id, Numbered(s.numberOf(m.method, id), id.Text)})
		}
		if m.method != cancellation {
			continue
		}
		if id, err := ParseID(m.requestID.of(body)); err == nil && !id.IsZero() {
			call, known := s.cancelled(id, func(int64) bool { return false })
			if !known {
				call.number = unknown
			}
			edits = append(edits, edit{m.requestID, Numbered(call.number, cmp.Or(call.text, id.Text))})
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
	tokens := newTokens(text[at:])
	m, _ := locateOne(tokens, text[at:], true)
	if _, id, ok := Unnumbered(m.id.of(text[at:])); ok && m.method == "" {
		return bytes.Join(splice(text, []edit{{span{at + m.id.from, at + m.id.to}, id}}), nil)
	}
	return text
}

// WithID returns a copy of a message with another id.
func WithID(text []byte, id string) []byte {
	m, _ := locateOne(newTokens(text), text, false)
	return bytes.Join(splice(text, []edit{{m.id, id}}), nil)
}

// WithProgress returns a copy of a notification of progress with another token.
func WithProgress(text []byte, token string) []byte {
	m, _ := locateOne(newTokens(text), text, false)
	return bytes.Join(splice(text, []edit{{m.progress, token}}), nil)
}

// WithCall returns a call with another id, and another progress token if it has one.
func WithCall(text []byte, id, progress string) [][]byte {
	m, _ := locateOne(newTokens(text), text, false)
	return splice(text, []edit{{m.id, id}, {m.callProgress, progress}})
}

// WithRequestID returns a cancellation of another call.
func WithRequestID(text []byte, id string) [][]byte {
	m, _ := locateOne(newTokens(text), text, false)
	return splice(text, []edit{{m.requestID, id}})
}

// span is where a value is. The zero value is none.
type span struct{ from, to int }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }

// edit replaces a value.
type edit struct {
	at   span
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

// located is where the values of a message are that name a call.
type located struct {
	id           span
	method       string
	requestID    span // of a cancellation
	progress     span // the token of a notification of progress
	callProgress span // the progress token of a call
}

func newTokens(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// locate returns the messages of a body, nil if it is not valid.
func locate(body []byte) (found []located) {
	tokens := newTokens(body)
	batch := tokens.PeekKind() == '['
	if batch {
		_, _ = tokens.ReadToken()
	}
	for kind := tokens.PeekKind(); kind != ']'; kind = tokens.PeekKind() {
		m, err := locateOne(tokens, body, false)
		if err != nil {
			return nil
		}
		if found = append(found, m); !batch {
			break
		}
	}
	return found
}

// locateOne reads one message, with isHead only up to the result or error that follows the id.
func locateOne(tokens *jsontext.Decoder, text []byte, isHead bool) (m located, err error) {
	err = eachMember(tokens, func(name string) (err error) {
		switch name {
		case "id":
			m.id, err = locateValue(tokens, text)
			return err
		case "method":
			var at span
			if at, err = locateValue(tokens, text); err == nil {
				_ = json.Unmarshal(at.of(text), &m.method) // the server refuses another type
			}
			return err
		case "params":
			return m.locateParams(tokens, text)
		case "result", "error":
			if isHead && m.id.to > 0 {
				return errHead
			}
		}
		return tokens.SkipValue()
	})
	return m, err
}

// errHead ends the reading of a message.
var errHead = errors.New("the rest is not needed")

func (m *located) locateParams(tokens *jsontext.Decoder, text []byte) error {
	if tokens.PeekKind() != '{' {
		return tokens.SkipValue()
	}
	return eachMember(tokens, func(name string) (err error) {
		switch {
		case name == "requestId":
			m.requestID, err = locateValue(tokens, text)
			return err
		case name == "progressToken":
			m.progress, err = locateValue(tokens, text)
			return err
		case name != "_meta" || tokens.PeekKind() != '{':
			return tokens.SkipValue()
		}
		return eachMember(tokens, func(name string) (err error) {
			if name == "progressToken" {
				m.callProgress, err = locateValue(tokens, text)
				return err
			}
			return tokens.SkipValue()
		})
	})
}

// eachMember reads an object, and calls read for each value.
func eachMember(tokens *jsontext.Decoder, read func(name string) error) error {
	if tokens.PeekKind() != '{' {
		return tokens.SkipValue()
	}
	if _, err := tokens.ReadToken(); err != nil {
		return err
	}
	for tokens.PeekKind() != '}' {
		token, err := tokens.ReadToken()
		if err != nil {
			return err
		}
		if err := read(token.String()); err != nil {
			return err
		}
	}
	_, err := tokens.ReadToken()
	return err
}

// locateValue reads a value and returns where it is.
func locateValue(tokens *jsontext.Decoder, text []byte) (span, error) {
	value, err := tokens.ReadValue()
	end := int(tokens.InputOffset())
	return span{end - len(value), end}, err
}
