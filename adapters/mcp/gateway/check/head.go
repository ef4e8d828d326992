package check

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	errorBytes   = 1 << 10
	contentBytes = 1 << 20   // of a result, which has the instructions of the server
	longestRetry = time.Hour // that a server can ask for
)

// content is what the body of an answer with a status of success is.
type content int

const (
	otherContent content = iota
	resultOfMCP          // or an event stream, which can be endless
	errorOfJSONRPC
)

// head is a response without its body, which may be an endless stream.
type head struct {
	status           int
	session          string
	cookies          []*http.Cookie
	metadata         string // that the challenge of a 401 names
	contentType      string
	content          content
	retries          bool          // the server names a time to try again, so that a refusal passes
	retryAfter       time.Duration // that time, if it is a number
	overHTTP         bool
	target           string // of a redirect, as the cause names it
	beginningOfError []byte // of a 400 or 403
}

func (p Probe) head(request *http.Request) (head, error) {
	response, err := p.Client.Do(request) //nolint:gosec // the operator has configured the URL
	if err != nil {
		return head{}, err
	}
	defer response.Body.Close()
	h := head{
		status:      response.StatusCode,
		session:     response.Header.Get(message.SessionHeader),
		cookies:     response.Cookies(),
		contentType: strings.ToLower(response.Header.Get("Content-Type")),
		overHTTP:    request.URL.Scheme == "http",
	}
	h.retries, h.retryAfter = retryOf(response.Header.Get("Retry-After"))
	if h.status == http.StatusUnauthorized {
		h.metadata = metadataOf(response.Header)
	}
	h.target = outbound.Target(response)
	switch {
	case h.status == http.StatusForbidden, h.status == http.StatusBadRequest:
		// A read error means another reason.
		h.beginningOfError, _ = io.ReadAll(io.LimitReader(response.Body, errorBytes))
	case h.isSuccess() && strings.HasPrefix(h.contentType, "text/event-stream"):
		h.content = resultOfMCP
	case h.isSuccess():
		body, err := io.ReadAll(io.LimitReader(response.Body, contentBytes))
		if err != nil {
			return h, err
		}
		h.content = contentOf(body)
	}
	return h, nil
}

var resourceMetadata = regexp.MustCompile(`(?i)\bresource_metadata\s*=\s*"?([^"\s,]+)`)

// metadataOf returns the address of the metadata that a challenge names (RFC
// 9728 §5.1), "" for none.
func metadataOf(header http.Header) string {
	for _, challenge := range header.Values("Www-Authenticate") {
		if found := resourceMetadata.FindStringSubmatch(challenge); found != nil {
			return found[1]
		}
	}
	return ""
}

// retryOf reads a Retry-After.
func retryOf(header string) (retries bool, after time.Duration) {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return header != "", 0
	}
	return true, time.Duration(min(seconds, int(longestRetry/time.Second))) * time.Second
}

// contentOf reads a message of JSON-RPC.
func contentOf(body []byte) content {
	found, isBatch, err := message.Decode(bytes.TrimPrefix(body, message.ByteOrderMark))
	switch {
	case err != nil || isBatch:
		return otherContent
	case found[0].Result.Kind() == '{':
		return resultOfMCP
	case found[0].Error.Kind() == '{':
		return errorOfJSONRPC
	}
	return otherContent
}

func (h head) isSuccess() bool { return h.status >= 200 && h.status < 300 }

// wantsFewer reports whether a later request can have another answer, and an earlier one can
// prolong a lockout.
func (h head) wantsFewer() bool {
	return h.status == http.StatusTooManyRequests || h.retries && h.status >= 400 && !isUnsupported(h.status)
}

// textsOfTLS are what Go, nginx and Apache answer to plain HTTP on a port for TLS.
var textsOfTLS = []string{
	"Client sent an HTTP request to an HTTPS server.", "The plain HTTP request was sent to HTTPS port",
	"You're speaking plain HTTP to an SSL-enabled server port.",
}

func (h head) asksForTLS() bool {
	return h.overHTTP && h.status == http.StatusBadRequest &&
		slices.ContainsFunc(textsOfTLS, func(text string) bool {
			return strings.Contains(string(h.beginningOfError), text)
		})
}
