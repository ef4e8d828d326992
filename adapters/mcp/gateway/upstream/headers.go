package upstream

import (
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	requestIDHeader = "X-Request-Id"
	ownPrefix       = "X-Pasteport-"
)

// forwardedHeaders are forwarded besides those of MCP. It is an allow list, because no list could
// have all headers in which frameworks look for a user.
var forwardedHeaders = []string{"Accept", "Accept-Language", "Last-Event-Id", "User-Agent", "Traceparent", "Tracestate"}

// forwards reports whether a request header is forwarded. CGI, WSGI and PHP read an underscore as a
// hyphen.
func (u *Upstream) forwards(header string) bool {
	isHeader := func(name string) bool { return strings.EqualFold(name, header) }
	return !strings.Contains(header, "_") && (strings.HasPrefix(header, "Mcp-") && header != message.SessionHeader ||
		slices.Contains(forwardedHeaders, header) || slices.ContainsFunc(u.config.Headers, isHeader))
}

func (u *Upstream) requestHeader(from http.Header, session string, hasBody bool) http.Header {
	header := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": nil}
	for name, values := range from {
		if u.forwards(name) && !httpguts.HeaderValuesContainsToken(from["Connection"], name) {
			header[name] = values
		}
	}
	if session != "" {
		header.Set(message.SessionHeader, session)
	}
	if hasBody {
		header.Set("Content-Type", "application/json") // the guard has checked the media type and the encoding
	}
	return header
}

// passedBack are response headers that a client gets besides Mcp-* and RateLimit-*. It is an allow
// list, because other headers may act on the whole origin of the gateway, or lead clients past it.
var passedBack = []string{
	"Content-Type", "Content-Language", "Content-Length", "Content-Encoding", "Cache-Control", "Date", "Etag",
	"Last-Modified", "Retry-After", "Traceparent",
}

// cleanAnswer removes all headers that are not passed back.
func cleanAnswer(header http.Header) {
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		return !slices.Contains(passedBack, name) && !strings.HasPrefix(name, "Mcp-") &&
			!strings.HasPrefix(name, "Ratelimit")
	})
	mediaType, _, err := mime.ParseMediaType(strings.Join(header.Values("Content-Type"), ","))
	isMessage := message.IsEventStream(header) || err == nil && mediaType == "application/json"
	if header.Get("Content-Type") != "" && !isMessage { // browsers run no text
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	// A shared cache stores a response only if it may (RFC 9111 §3.5), and each is for one caller.
	if header.Get("Cache-Control") != "" {
		header.Set("Cache-Control", "no-store, no-transform")
	}
	header.Set("X-Content-Type-Options", "nosniff")
}
