package stream

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	jsonType = "application/json"
	// freeAnswers is how many bytes of answers need no reservation.
	freeAnswers = 64 << 10
)

// refused matches the weight of a media range that the client does not accept.
var refused = regexp.MustCompile(`;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)`)

// Accepts reports whether the client accepts the media type, as one without an Accept header does.
func Accepts(r *http.Request, mediaType string) bool {
	header := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	kind, _, _ := strings.Cut(mediaType, "/")
	for accepted := range strings.SplitSeq(header, ",") {
		wanted, _, _ := strings.Cut(accepted, ";")
		wanted = strings.TrimSpace(wanted)
		if (wanted == mediaType || wanted == kind+"/*" || wanted == "*/*") && !refused.MatchString(accepted) {
			return true
		}
	}
	return header == ""
}

// NotAcceptable answers a client that accepts none of the possible media types.
func NotAcceptable(w http.ResponseWriter, possible string) {
	message.WriteError(w, http.StatusNotAcceptable, "Not Acceptable: the response is "+possible)
}

// Negotiate returns a response to a POST in which a handler may write a stream of events for any
// client. A client that accepts only JSON gets the answers from that stream, for which memory is,
// and loses the notifications and requests between them. (Package program sends requests elsewhere;
// the SDK cannot.) Call finish before the handler returns. Negotiate returns false when it has
// refused a client that accepts neither.
func Negotiate(w http.ResponseWriter, r *http.Request, isBatch bool, memory message.Reservation) (
	to http.ResponseWriter, finish func(), ok bool) {
	switch {
	case Accepts(r, message.EventStream):
		return w, func() {}, true
	case !Accepts(r, jsonType):
		NotAcceptable(w, jsonType+" or "+message.EventStream)
		return w, nil, false
	}
	a := &jsonAnswer{ResponseWriter: w, isBatch: isBatch, memory: memory}
	a.events.Emit = a.keep
	a.events.Reserve = func(length int64) error { return a.memory.Extend(2*int64(a.kept) + length) }
	return a, a.finish, true
}

// jsonAnswer collects the answers in a stream of events.
type jsonAnswer struct {
	http.ResponseWriter
	isBatch  bool
	status   int // 0 before the response begins
	isStream bool
	events   message.Events
	answers  [][]byte
	kept     int // bytes of the answers
	memory   message.Reservation
	failed   error
}

func (a *jsonAnswer) WriteHeader(status int) {
	a.status, a.isStream = status, message.IsEventStream(a.Header())
	if !a.isStream {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *jsonAnswer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.isStream {
		return a.ResponseWriter.Write(p)
	}
	if a.failed == nil {
		a.failed = a.events.Read(p)
	}
	return len(p), a.failed
}

// keep keeps the message of an event if it is an answer and there is memory for it and its copy.
func (a *jsonAnswer) keep(event []byte, failed error) error {
	answer, _ := message.ParseEvent(event)
	if failed != nil || !message.IsResponse(answer) {
		return failed
	}
	if a.kept += len(answer); a.kept > freeAnswers {
		if err := a.memory.Extend(2 * int64(a.kept)); err != nil {
			a.answers = nil
			return err
		}
	}
	a.answers = append(a.answers, answer)
	return nil
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

// discarded is a response that is dropped.
type discarded struct{ header http.Header }

// Discard returns a response that is dropped, for a message that the client has not sent. It has a
// copy of the headers of w, because one of them has the id of the request.
func Discard(w http.ResponseWriter) http.ResponseWriter { return discarded{w.Header().Clone()} }

func (d discarded) Header() http.Header { return d.header }

func (discarded) WriteHeader(int) {}

func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// FlushError is called by http.ResponseController.
func (discarded) FlushError() error { return nil }

const (
	// RetryAfter is the Retry-After header of every 503, in seconds.
	RetryAfter = "5"
	// TooManyBodies is the description of the 503 for a body that gets no memory.
	TooManyBodies = "Too many messages are being processed"
	// ShuttingDown is the description of the 503 during a shutdown.
	ShuttingDown = "The service is shutting down"
)

// Unavailable answers 503 without a challenge, so that clients keep their tokens.
func Unavailable(w http.ResponseWriter, description string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", RetryAfter)
	WriteError(w, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable.Code(), description)
}

// WriteError answers with an OAuth error (RFC 6749 §5.2).
func WriteError(w http.ResponseWriter, status int, code, description string) {
	body, _ := json.Marshal(map[string]string{"error": code, "error_description": description}) // strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// NoSession answers 404, so that the client initializes another session.
func NoSession(w http.ResponseWriter) {
	message.WriteError(w, http.StatusNotFound, "Not Found: the session does not exist")
}

// RefuseSession is NoSession with a rule and a reason for the trace.
func RefuseSession(w http.ResponseWriter, r *http.Request, rule, reason string) {
	attempt.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, rule, reason))
	NoSession(w)
}

// IsInvalidToken reports whether an Authorization has refused a token.
func IsInvalidToken(err error) bool {
	kind, ok := oauth.KindOf(err)
	return ok && kind == oauth.InvalidToken
}
