package message

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ID is the id of a call as its client has chosen it. Some clients give all their calls the same
// one, so an MCP server in this process or in a program gets ids of our own, and the client gets
// its own back.
type ID struct {
	Text string // as the client has written it; "" for no id
	Key  string // equal for two spellings of one id
}

const maxID = 1 << 10

// ParseID returns the id of a message, the zero value for null. It keeps fractions and large
// numbers, which the types of the SDK do not.
func ParseID(text jsontext.Value) (ID, error) {
	id := ID{Text: string(text), Key: string(text)}
	switch kind := text.Kind(); {
	case len(text) > maxID:
		return ID{}, tooMany("id: more than %d bytes", maxID)
	case !IsPresent(text):
		return ID{}, nil
	case !utf8.Valid(text):
		return ID{}, &messageError{code: sdk.CodeParseError, text: "id is not valid UTF-8"}
	case kind == '"':
		key, _ := jsontext.AppendUnquote(nil, text) // U+FFFD for an unpaired surrogate
		id.Key = `"` + string(key)
	case kind == '0':
		number, _ := strconv.ParseFloat(string(text), 64)             // infinite, if it is too large
		if number == math.Trunc(number) && math.Abs(number) < 1<<53 { // as all programs can tell from the next
			id.Key = strconv.FormatInt(int64(number), 10)
		}
	default:
		return ID{}, &messageError{code: sdk.CodeInvalidRequest, text: "id is neither a number nor a string"}
	}
	return id, nil
}

// IsZero reports whether a message has no id.
func (id ID) IsZero() bool { return id.Text == "" }

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

// Renumber returns the messages with numbered ids instead of those of calls, and of those that
// cancellations name.
func (s *Sequence) Renumber(messages []Message) []Message {
	renumbered := slices.Clone(messages)
	for i, m := range messages {
		if m.IsCall() {
			number := int64(0) // of initialize, which comes before a session has its Sequence
			if m.Method != "initialize" {
				number = s.Next(m.ID)
			}
			renumbered[i].ID.Text = Numbered(number, m.ID.Text)
		}
		id, cancels := m.Cancels()
		if !cancels {
			continue
		}
		number, text := s.Cancelled(id, func(int64) bool { return false })
		number = cmp.Or(number, -1) // the number of no call
		renumbered[i].Params = m.Params.With("requestId", Numbered(number, cmp.Or(text, id.Text)))
	}
	return renumbered
}

// Cancels returns the id of the call that a message cancels.
func (m Message) Cancels() (ID, bool) {
	if m.Method != "notifications/cancelled" {
		return ID{}, false
	}
	id, err := ParseID(m.Params.Get("requestId"))
	return id, err == nil && !id.IsZero()
}

// Restore returns a message of the SDK, or an event with it, with the id of the client in place of
// a numbered one.
func Restore(text []byte) []byte {
	at := 0
	if len(text) > 0 && text[0] != '{' {
		found := bytes.Index(text, []byte("data: {"))
		if found < 0 {
			return text
		}
		at = found + len("data: ")
	}
	id, isResponse := head(text[at:])
	if _, own, ok := Unnumbered(id); ok && isResponse {
		end := at + len(responseBeginning)
		return slices.Concat(text[:end], []byte(own), text[end+len(id):])
	}
	return text
}

// IsResponse reports whether a text is a response, as the SDK and Encode write it.
func IsResponse(text []byte) bool {
	_, isResponse := head(text)
	return isResponse
}

// responseBeginning is how the SDK and Encode write a response, and a request.
const responseBeginning = `{"jsonrpc":"2.0","id":`

// head returns the id of a response without reading the rest, which can be long.
func head(text []byte) (id jsontext.Value, isResponse bool) {
	rest, found := bytes.CutPrefix(text, []byte(responseBeginning))
	if !found {
		return nil, false
	}
	id, err := jsontext.NewDecoder(bytes.NewBuffer(rest)).ReadValue()
	if err != nil {
		return nil, false
	}
	after := rest[len(id):]
	return id, bytes.HasPrefix(after, []byte(`,"result":`)) || bytes.HasPrefix(after, []byte(`,"error":`))
}

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

// maxRecent is the number of calls that a cancellation can name. Each session keeps that many.
const maxRecent = 256

var idSeed = maphash.MakeSeed()

// Next returns the number of the next call.
func (s *Sequence) Next(id ID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	call := recentCall{maphash.String(idSeed, id.Key), id.Text, s.last}
	if len(id.Text) > 64 { // longer than a UUID with its quotes
		call.text = ""
	}
	if len(s.recent) < maxRecent {
		s.recent = append(s.recent, call)
	} else {
		s.recent[(s.last-1)%maxRecent] = call
	}
	return s.last
}

// Cancelled returns the number of the call that a cancellation of the id means, 0 for none, and its
// id unless that is long. The call may have been answered. A client that repeats its ids leaves
// open which of its calls it means, and a late cancellation must not hit the next one. So it then
// means the newest call that isGone reports as one whose client has gone, or none: a wrong answer
// costs more than a call that runs to its end.
func (s *Sequence) Cancelled(id ID, isGone func(number int64) bool) (number int64, text string) {
	var calls []recentCall
	wanted := maphash.String(idSeed, id.Key)
	s.mu.Lock()
	for _, call := range s.recent {
		if call.key == wanted {
			calls = append(calls, call)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(calls, func(a, b recentCall) int { return cmp.Compare(a.number, b.number) })
	if len(calls) == 1 {
		return calls[0].number, calls[0].text
	}
	for _, call := range slices.Backward(calls) {
		if isGone(call.number) {
			return call.number, call.text
		}
	}
	return 0, ""
}
