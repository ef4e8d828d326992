package response

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

const jsonType = "application/json"

// refused matches the weight of a media range that the client does not accept.
var refused = regexp.MustCompile(`;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)`)

// Accepts reports whether the client accepts the media type, as one without an Accept header does.
// The most specific media ranges decide.
func Accepts(r *http.Request, mediaType string) bool {
	header := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	if header == "" {
		return true
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	for _, wanted := range []string{mediaType, kind + "/*", "*/*"} {
		found := false
		for accepted := range strings.SplitSeq(header, ",") {
			if !strings.Contains(accepted, wanted) {
				continue
			}
			if !refused.MatchString(accepted) {
				return true
			}
			found = true
		}
		if found {
			return false
		}
	}
	return false
}

// NotAcceptable answers a client that accepts none of the possible media types.
func NotAcceptable(w http.ResponseWriter, possible string) {
	jsonrpc.WriteError(w, http.StatusNotAcceptable, "Not Acceptable: the response is "+possible)
}

// Negotiate returns a response to a POST in which a handler may write a stream of events for any
// client. A client that accepts only JSON gets the answers in the stream, without the
// notifications and requests between them, and the memory is for these answers. A program sends
// its requests elsewhere; the SDK offers no way to do so. Call finish before the handler returns.
// Negotiate returns false when it has refused a client that accepts neither.
func Negotiate(w http.ResponseWriter, r *http.Request, body []byte, memory jsonrpc.Reservation) (
	to http.ResponseWriter, finish func(), ok bool) {
	streams := Accepts(r, jsonrpc.EventStream)
	if !streams && !Accepts(r, jsonType) {
		NotAcceptable(w, jsonType+" or "+jsonrpc.EventStream)
		return w, nil, false
	}
	if streams {
		return w, func() {}, true
	}
	a := &jsonAnswer{
		ResponseWriter: w,
		isBatch:        bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")),
		memory:         memory,
	}
	return a, a.finish, true
}

// jsonAnswer collects the answers in a stream of events.
type jsonAnswer struct {
	http.ResponseWriter
	isBatch  bool
	status   int // 0 before the response begins
	isStream bool
	split    jsonrpc.Splitter
	event    []byte // an incomplete one
	answers  [][]byte
	kept     int // bytes of the event and the answers
	memory   jsonrpc.Reservation
	failed   error
}

// WriteHeader implements http.ResponseWriter.
func (a *jsonAnswer) WriteHeader(status int) {
	a.status, a.isStream = status, jsonrpc.IsEventStream(a.Header())
	if !a.isStream {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (a *jsonAnswer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.isStream {
		return a.ResponseWriter.Write(p)
	}
	for rest := p; len(rest) > 0 && a.failed == nil; {
		length, ends := a.split.Next(rest)
		a.keep(rest[:length])
		if rest = rest[length:]; ends == jsonrpc.EventEnd {
			a.endEvent()
		}
	}
	return len(p), a.failed
}

// keep keeps a part of an event, unless there is no memory for it and its copy.
func (a *jsonAnswer) keep(part []byte) {
	if a.kept += len(part); a.kept > freeQueue {
		a.failed = a.memory.Extend(2 * int64(a.kept))
	}
	if a.failed != nil {
		a.event, a.answers = nil, nil
		return
	}
	a.event = append(a.event, part...)
}

// endEvent keeps the message in a complete event if it is an answer.
func (a *jsonAnswer) endEvent() {
	message, _ := jsonrpc.ParseEvent(a.event)
	a.kept -= len(a.event)
	a.event = a.event[:0]
	if jsonrpc.IsAnswer(message) {
		a.answers = append(a.answers, message)
		a.kept += len(message)
	}
}

// FlushError is called by http.ResponseController.
func (a *jsonAnswer) FlushError() error {
	if a.isStream {
		return a.failed
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

func (a *jsonAnswer) finish() {
	defer a.memory.Release()
	switch {
	case !a.isStream:
	case a.failed != nil:
		Unavailable(a.ResponseWriter, TooManyBodies)
	case a.isBatch:
		a.send(slices.Concat([]byte("["), bytes.Join(a.answers, []byte(",")), []byte("]")))
	case len(a.answers) > 0:
		a.send(a.answers[0])
	default:
		Unavailable(a.ResponseWriter, "The response has ended without an answer")
	}
}

func (a *jsonAnswer) send(body []byte) {
	a.Header().Set("Content-Type", jsonType)
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(body)
}
