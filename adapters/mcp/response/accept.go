package response

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
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
// notifications and requests between them. A program sends its requests elsewhere; the SDK offers
// no way to do so. Call finish before the handler returns. Negotiate returns false when it has
// refused a client that accepts neither.
func Negotiate(w http.ResponseWriter, r *http.Request, body []byte) (to http.ResponseWriter, finish func(), ok bool) {
	streams := Accepts(r, jsonrpc.EventStream)
	if !streams && !Accepts(r, jsonType) {
		NotAcceptable(w, jsonType+" or "+jsonrpc.EventStream)
		return w, nil, false
	}
	if streams {
		return w, func() {}, true
	}
	a := &jsonAnswer{ResponseWriter: w, isBatch: bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))}
	return a, a.finish, true
}

// jsonAnswer collects the answers in a stream of events.
type jsonAnswer struct {
	http.ResponseWriter
	isBatch  bool
	status   int // 0 before the response begins
	isStream bool
	unread   []byte // an incomplete event
	answers  []json.RawMessage
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
	a.unread = append(a.unread, p...)
	for {
		event, rest, complete := bytes.Cut(a.unread, []byte("\n\n"))
		if !complete {
			return len(p), nil
		}
		a.read(event)
		a.unread = rest
	}
}

// read keeps the answer in an event, whose message is in one line.
func (a *jsonAnswer) read(event []byte) {
	for line := range bytes.Lines(event) {
		message, isData := bytes.CutPrefix(line, []byte("data: "))
		var request struct {
			Method *string `json:"method"`
		}
		if isData && json.Unmarshal(message, &request) == nil && request.Method == nil {
			a.answers = append(a.answers, bytes.Clone(message))
		}
	}
}

// FlushError is called by http.ResponseController.
func (a *jsonAnswer) FlushError() error {
	if a.isStream {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

func (a *jsonAnswer) finish() {
	if !a.isStream {
		return
	}
	a.Header().Set("Content-Type", jsonType)
	switch {
	case a.isBatch:
		body, _ := json.Marshal(a.answers) // they are valid
		a.send(body)
	case len(a.answers) > 0:
		a.send(a.answers[0])
	default:
		Unavailable(a.ResponseWriter, "The response has ended without an answer")
	}
}

func (a *jsonAnswer) send(body []byte) {
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(body)
}
