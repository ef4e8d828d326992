package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

const maxBody = 256 << 10 // bytes

// wire is the HTTP client of an examination.
type wire struct {
	options   Options
	agent     string
	transport *http.Transport
}

func newWire(o Options) *wire {
	return &wire{o, newAgent(o.Version), &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12, Time: o.Now},
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: o.Limit, MaxResponseHeaderBytes: 64 << 10,
	}}
}

// newAgent returns the User-Agent of all requests of one run. Pasteport's trace recognizes it, and
// keeps the steps of runs apart by its id.
func newAgent(version string) string {
	version, _, _ = strings.Cut(strings.Trim(version, "()"), " ")
	return "pasteport-doctor/" + cmp.Or(version, "unknown") + " (run " + rand.Text()[:8] + ")"
}

func (w *wire) close() { w.transport.CloseIdleConnections() }

// request is an HTTP request; header alternates names and values.
type request struct {
	method, url, body string
	header            []string
}

// answer is the response to a request, or the error of a request without one, whose status is 0.
// The body of a stream is not read.
type answer struct {
	method, url string
	status      int
	header      http.Header
	body        []byte
	err         error
}

// String returns one line, without the query of a redirect, which may hold secrets.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	text := fmt.Sprintf("%s %s returned %d", a.method, a.url, a.status)
	if location := a.header.Get("Location"); location != "" {
		place, _, _ := strings.Cut(location, "?")
		text += " to " + place
	}
	return text
}

func (a answer) redirects() bool { return a.status >= 300 && a.status < 400 }

// mediaType returns the content type without its parameters.
func (a answer) mediaType() string {
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return mediaType
}

// RoundTrip implements http.RoundTripper with doctor's User-Agent.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", w.agent)
	return w.transport.RoundTrip(request)
}

func (w *wire) open(ctx context.Context, q request) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, q.url, strings.NewReader(q.body))
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", q.url, err)
	}
	for i := 0; i+1 < len(q.header); i += 2 {
		r.Header.Set(q.header[i], q.header[i+1])
	}
	response, err := w.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", q.url, w.explainTimeout(err))
	}
	return response, nil
}

// explainTimeout names the limit in the error of a deadline.
func (w *wire) explainTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no response within %s", w.options.Limit)
	}
	return err
}

// send reads the whole response, except a stream, which has no end.
func (w *wire) send(ctx context.Context, q request) answer {
	ctx, cancel := context.WithTimeout(ctx, w.options.Limit)
	defer cancel()
	response, err := w.open(ctx, q)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	a := answer{
		method: q.method,
		url:    q.url,
		status: response.StatusCode,
		header: response.Header,
	}
	if a.mediaType() == eventStream {
		return a
	}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return answer{err: fmt.Errorf("reading the response of %s: %w", q.url, w.explainTimeout(err))}
	case len(a.body) > maxBody:
		return answer{err: fmt.Errorf("reading the response of %s: it is longer than %d KiB", q.url, maxBody>>10)}
	}
	return a
}

func (w *wire) get(ctx context.Context, target string, header ...string) answer {
	return w.send(ctx,
		request{method: http.MethodGet, url: target, header: append([]string{"Accept", "application/json"}, header...)})
}

func (w *wire) post(ctx context.Context, target string, form url.Values, header ...string) answer {
	return w.send(ctx, request{
		method: http.MethodPost, url: target, body: form.Encode(),
		header: append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "application/json"},
			header...),
	})
}

// document is an answer whose body is a JSON object, unless malformed is set.
type document struct {
	answer
	malformed error
	members   map[string]any
}

func parse(a answer) document {
	d := document{answer: a}
	if err := json.Unmarshal(a.body, &d.members); err != nil || d.members == nil {
		d.malformed = fmt.Errorf("%s returned %d with a body that is not a JSON object", a.url, a.status)
	}
	return d
}

func (d document) text(member string) string {
	text, _ := d.members[member].(string)
	return text
}

func (d document) flag(member string) bool {
	flag, _ := d.members[member].(bool)
	return flag
}

func (d document) list(member string) (texts []string) {
	values, _ := d.members[member].([]any)
	for _, value := range values {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// originOf returns the scheme and the host of a URL.
func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// sameOrigin reports whether both URLs have the same scheme and host.
func sameOrigin(a, b string) bool {
	first, err := url.Parse(a)
	second, other := url.Parse(b)
	return err == nil && other == nil && strings.EqualFold(originOf(first), originOf(second))
}

// IsLoopback reports whether the URL names this computer.
func IsLoopback(u *url.URL) bool {
	address := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || address != nil && address.IsLoopback()
}

// isProtected reports whether requests to the URL are encrypted or stay on this computer.
func isProtected(target string) bool {
	u, err := url.Parse(target)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u))
}
