package upstream

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const (
	sessionHeader   = "Mcp-Session-Id"
	requestIDHeader = "X-Request-Id"
	ownPrefix       = "X-Pasteport-"
)

// passed are the headers that go on besides those of MCP. A list of what may pass, because nobody knows every header in which some
// framework looks for a person, nor how they can be spelled.
var passed = []string{"Accept", "Accept-Language", "Last-Event-Id", "User-Agent", "Traceparent", "Tracestate"}

// kept never go on, whatever the configuration says.
var kept = []string{
	"Authorization", "Cookie", "Host", "Content-Length", "Content-Type", "Content-Encoding", "Content-Digest", "Forwarded", "Origin",
	"Signature", "Signature-Input", sessionHeader, requestIDHeader,
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// CheckHeader finds what is wrong with the name of a header that is to go on.
func CheckHeader(name string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New("it is no header name")
	case strings.Contains(name, "_"):
		return errors.New("it has an underscore, which some servers take for a hyphen: such headers never go on")
	case slices.Contains(kept, canonical), strings.HasPrefix(canonical, ownPrefix), strings.HasPrefix(canonical, "X-Forwarded-"):
		return errors.New("it is never passed on from clients")
	}
	return nil
}

// passing returns which headers of a request go on.
func passing(more []string) func(header string) bool {
	list := slices.Clone(passed)
	for _, name := range more {
		list = append(list, http.CanonicalHeaderKey(name))
	}
	return func(header string) bool {
		if strings.Contains(header, "_") { // CGI, WSGI and PHP read it as a hyphen
			return false
		}
		return strings.HasPrefix(header, "Mcp-") && header != sessionHeader || slices.Contains(list, header)
	}
}

func (u *Upstream) requestHeader(from http.Header, x *exchange) http.Header {
	header := http.Header{}
	for name, values := range from {
		if u.passes(name) {
			header[name] = values
		}
	}
	if x.session != "" {
		header.Set(sessionHeader, x.session)
	}
	if x.body != nil {
		header.Set("Content-Type", "application/json") // the guard has seen that it is, and in which encoding
	}
	if x.answerID != "" {
		header.Set(requestIDHeader, x.answerID)
	}
	return header
}

// withheld are headers of an answer that are for the gateway, or that would act on the gateway's whole origin or lead clients past it
// (U15).
var withheld = []string{
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Proxy-Authenticate", "Alt-Svc", "Clear-Site-Data", "Strict-Transport-Security",
	"Refresh", "Link", "Location", "Service-Worker-Allowed", "Nel", "Report-To", "Reporting-Endpoints", "Accept-Ch", "Critical-Ch",
	"Origin-Agent-Cluster", "Origin-Trial", "Sourcemap", requestIDHeader,
}

// cleanAnswer also takes out what repeats the credential; what an upstream puts into its body is its own affair.
func cleanAnswer(answer *http.Response) {
	credential := strings.TrimPrefix(answer.Request.Header.Get("Authorization"), "Bearer ")
	repeats := func(value string) bool { return credential != "" && strings.Contains(value, credential) }
	for name, values := range answer.Header {
		if slices.Contains(withheld, name) || strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, ownPrefix) || slices.ContainsFunc(values, repeats) {
			delete(answer.Header, name)
		}
	}
	if types := answer.Header.Values("Content-Type"); slices.ContainsFunc(types, isDocument) {
		answer.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	answer.Header.Set("X-Content-Type-Options", "nosniff")
	answer.Trailer = nil // until the end; see ending
}

// isDocument reports whether a browser would run scripts in a body of this type, at the gateway's origin. Of a list of types, browsers
// take the last.
func isDocument(contentTypes string) bool {
	for contentType := range strings.SplitSeq(strings.ToLower(contentTypes), ",") {
		mediaType, _, _ := strings.Cut(contentType, ";")
		mediaType = strings.TrimSpace(mediaType)
		if mediaType == "text/html" || strings.HasSuffix(mediaType, "/xml") || strings.HasSuffix(mediaType, "+xml") {
			return true
		}
	}
	return false
}
