package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	maxBody     = 256 << 10 // bytes
	jsonType    = "application/json"
	formType    = "application/x-www-form-urlencoded"
	eventStream = "text/event-stream"
)

// wire is the HTTP client of an examination. All requests of one run have one User-Agent:
// Pasteport's trace recognizes it, and keeps the steps of runs apart by its id.
type wire struct {
	agent     string
	limit     time.Duration // of each request
	transport *http.Transport
}

func newWire(roots *x509.CertPool, limit time.Duration) *wire {
	version, _, _ := strings.Cut(strings.Trim(service.Version(), "()"), " ")
	return &wire{
		agent: "pasteport-doctor/" + cmp.Or(version, "unknown") + " (run " + rand.Text()[:8] + ")",
		limit: limit,
		transport: &http.Transport{
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    limit,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

func (w *wire) close() { w.transport.CloseIdleConnections() }

// answer is the response to a request, or the error of a request without one, whose status is 0.
// The body of a stream is not read.
type answer struct {
	method, url string
	status      int
	header      http.Header
	tls         *tls.ConnectionState // nil over http
	body        []byte
	err         error
}

func answerOf(response *http.Response) answer {
	return answer{
		method: response.Request.Method,
		url:    response.Request.URL.String(),
		status: response.StatusCode,
		header: response.Header,
		tls:    response.TLS,
	}
}

// String returns one line, without the query of a redirect, which may hold secrets.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	text := fmt.Sprintf("%s %s returned %d", a.method, a.url, a.status)
	if location := a.header.Get("Location"); location != "" {
		target, _, _ := strings.Cut(location, "?")
		text += " to " + target
	}
	return text
}

func (a answer) redirects() bool { return a.status >= 300 && a.status < 400 }

// mediaTypeOf returns the content type without its parameters.
func mediaTypeOf(header http.Header) string {
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return mediaType
}

// RoundTrip implements http.RoundTripper with doctor's User-Agent and a limit on the body. The
// error is an upstreamError if a gateway responded instead of the server behind it.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", w.agent)
	response, err := w.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxBody)
	if response.StatusCode < http.StatusInternalServerError {
		return response, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading an error: %w", err)
	}
	var message struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &message) == nil && strings.HasPrefix(message.Error.Message, gatewayPrefix) {
		return nil, upstreamError(message.Error.Message)
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
}

const gatewayPrefix = "The MCP server behind this gateway "

// upstreamError is the error of Pasteport's gateway about the MCP server behind it.
type upstreamError string

func (e upstreamError) Error() string { return string(e) }

// open sends a request; header alternates names and values.
func (w *wire) open(ctx context.Context, method, target, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", target, err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := w.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", target, w.explainTimeout(err))
	}
	return response, nil
}

// explainTimeout names the limit in the error of a deadline.
func (w *wire) explainTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no response within %s", w.limit)
	}
	return err
}

// send reads the whole response, except a stream, which has no end.
func (w *wire) send(ctx context.Context, method, target, body string, header ...string) answer {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	response, err := w.open(ctx, method, target, body, header...)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	a := answerOf(response)
	if mediaTypeOf(a.header) == eventStream {
		return a
	}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return answer{err: fmt.Errorf("reading the response of %s: %w", target, w.explainTimeout(err))}
	}
	return a
}

func (w *wire) get(ctx context.Context, target string, header ...string) answer {
	return w.send(ctx, http.MethodGet, target, "", header...)
}

func (w *wire) post(ctx context.Context, target string, form url.Values, header ...string) answer {
	return w.send(ctx, http.MethodPost, target, form.Encode(),
		append([]string{"Content-Type", formType, "Accept", jsonType}, header...)...)
}

// document is an answer whose body is a JSON object, unless members is nil.
type document struct {
	answer
	members map[string]any
}

func parse(a answer) document {
	d := document{answer: a}
	if json.Unmarshal(a.body, &d.members) != nil {
		d.members = nil
	}
	return d
}

// document reads a JSON object at the address, without redirects.
func (w *wire) document(ctx context.Context, target string) (document, finding) {
	d := parse(w.get(ctx, target, "Accept", jsonType))
	switch {
	case d.err != nil:
		return d, fail("Make this URL return the document without delay.", "%s", d)
	case d.redirects():
		return d, fail("Serve the document itself at this URL, and exempt /.well-known/* from redirects "+
			"(trailing slash, www, language, login).", "%s", d)
	case d.status != http.StatusOK:
		return d, fail("Let the proxy pass /.well-known/oauth-* to the server.", "%s", d)
	case d.members == nil:
		return d, fail("Let the proxy pass /.well-known/oauth-* to the server; one of the site's own pages may be "+
			"served in its place.", "%s returned a body that is not a JSON object", target)
	}
	return d, ok("%s", target)
}

func (d document) text(member string) string {
	text, _ := d.members[member].(string)
	return text
}

func (d document) list(member string) (texts []string) {
	values, _ := d.members[member].([]any)
	for _, value := range values {
		if text, isText := value.(string); isText {
			texts = append(texts, text)
		}
	}
	return texts
}

// originOf returns the scheme and the host of a URL.
func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && text == originOf(u)
}

// sameOrigin reports whether both URLs have the same scheme and host.
func sameOrigin(a, b string) bool {
	first, err := url.Parse(a)
	second, other := url.Parse(b)
	return err == nil && other == nil && strings.EqualFold(originOf(first), originOf(second))
}

// isLoopback reports whether the URL names this computer.
func isLoopback(u *url.URL) bool { return oauth.IsLoopbackOrigin(originOf(u)) }
