package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/uri"
)

// check is a question. run returns what it saw and, for a failure, the fix. If the check is not
// possible, run returns "" for seen, and the reason as the fix.
type check struct {
	name, question string
	run            func(context.Context, *probe) (seen, fix string)
}

// stages are the checks in their order. If a check does not pass, the rest of its stage is skipped.
var stages = [][]check{
	{
		{"connect", "Can the server be reached, with a certificate that clients trust?", connect},
		{"challenge", "Is a request without a token refused with one challenge?", challenge},
		{"resource", "Does the metadata of the MCP server name the URL that people enter?", resource},
		{"server", "Does the metadata of the authorization server fit?", server},
		{"token", "Does the token endpoint respond with an error that no cache keeps?", token},
		{"cors", "Can web pages log in, and read the challenge and the session ID?", cors},
	},
	{
		{"login", "Does a login end with tokens that the MCP server accepts?", login},
		{"stream", "Do events arrive immediately?", stream},
		{"refresh", "Can the client refresh its tokens?", refresh},
		{"revoke", "Can the tokens be revoked, and are they refused then?", revoke},
	},
	{{"upstream", "Does the MCP server behind the gateway work?", upstream}},
}

// probe is the HTTP client of one run, with what its checks have learnt for the later ones.
type probe struct {
	*options
	agent     string // by which Pasteport's trace recognizes doctor, and distinguishes its runs
	transport *http.Transport
	secrets   []string // each followed by its replacement, for strings.NewReplacer

	first     answer // to a request without a token
	challenge string // the resource_metadata of its challenge
	resource  oauthex.ProtectedResourceMetadata
	server    *oauthex.AuthServerMeta // nil until it is known to fit

	state, verifier string // of the login
	page            *browser.Page
	code            string
	access, refresh string
}

func newProbe(o *options) *probe {
	version, _, _ := strings.Cut(strings.Trim(service.Version(), "()"), " ")
	p := &probe{
		options: o,
		agent:   "pasteport-doctor/" + cmp.Or(version, "unknown") + " (run " + rand.Text()[:8] + ")",
		transport: &http.Transport{
			TLSClientConfig:        &tls.Config{RootCAs: o.roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
	p.hide(o.token)
	for _, value := range o.fields {
		if len(value) >= 6 { // a short one, such as a name, would spoil words of the report
			p.hide(value)
		}
	}
	return p
}

// examine makes all checks. It returns an error only when ctx ends. It leaves no tokens behind.
func (p *probe) examine(ctx context.Context, show func(result)) (results []result, err error) {
	defer p.transport.CloseIdleConnections()
	defer func() {
		if p.access != "" {
			revoke(context.WithoutCancel(ctx), p)
		}
	}()
	for _, stage := range stages {
		reason := ""
		for _, c := range stage {
			seen, fix := "", reason
			if reason == "" {
				seen, fix = c.run(ctx, p)
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("examining %s: %w", p.endpoint, err)
			}
			r := result{
				Name:     c.name,
				Question: c.question,
				Status:   passed,
				Seen:     p.clean(seen),
				Fix:      p.clean(fix),
			}
			switch {
			case seen == "":
				r.Status, r.Seen, r.Fix = skipped, r.Fix, ""
				reason = cmp.Or(reason, "because "+c.name+" was skipped")
			case fix != "":
				r.Status, reason = failed, "because "+c.name+" failed"
			}
			results = append(results, r)
			show(r)
		}
	}
	return results, nil
}

// hide keeps secrets out of the report.
func (p *probe) hide(secrets ...string) {
	for _, secret := range secrets {
		if secret != "" {
			p.secrets = append(p.secrets, secret, "[secret]", url.QueryEscape(secret), "[secret]")
		}
	}
}

const maxText = 600 // bytes of a server's text in a report

// clean removes secrets, control characters and direction marks from a server's text, and cuts it.
func (p *probe) clean(text string) string {
	text = strings.NewReplacer(p.secrets...).Replace(text)
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

const (
	maxBody     = 256 << 10 // bytes
	jsonType    = "application/json"
	eventStream = "text/event-stream"
)

// answer is a response with its body. The body of a stream has not been read.
type answer struct {
	*http.Response
	body []byte
}

// String returns one line, without the query of a redirect, which may hold secrets.
func (a answer) String() string {
	text := fmt.Sprintf("%s %s returned %d", a.Request.Method, a.Request.URL, a.StatusCode)
	if target, _, _ := strings.Cut(a.Header.Get("Location"), "?"); target != "" {
		text += " to " + target
	}
	return text
}

func (a answer) redirects() bool { return a.StatusCode >= 300 && a.StatusCode < 400 }

func (a answer) isRefusal() bool { return a.StatusCode >= 400 && a.StatusCode < 500 }

// mediaType returns the content type without its parameters.
func (a answer) mediaType() string {
	mediaType, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return mediaType
}

// client returns a client that follows no redirect.
func (p *probe) client(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		Timeout:       p.limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// RoundTrip implements http.RoundTripper with doctor's User-Agent and a limit on the body. The
// error is an upstreamError if a gateway responded instead of the server behind it.
func (p *probe) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", p.agent)
	response, err := p.transport.RoundTrip(request)
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

// open sends a request; header alternates names and values. The body is still open.
func (p *probe) open(ctx context.Context, method, target, body string, header ...string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := p.client(p).Do(request) //nolint:bodyclose // the caller closes it
	return answer{Response: response}, err
}

// send reads the whole response, except a stream, which has no end.
func (p *probe) send(ctx context.Context, method, target, body string, header ...string) (answer, error) {
	a, err := p.open(ctx, method, target, body, header...)
	if err != nil {
		return a, err
	}
	defer a.Body.Close()
	if a.mediaType() != eventStream {
		a.body, err = io.ReadAll(a.Body)
	}
	if err != nil {
		return a, fmt.Errorf("reading the response of %s: %w", target, err)
	}
	return a, nil
}

func (p *probe) post(ctx context.Context, target string, form url.Values) (answer, error) {
	return p.send(ctx, http.MethodPost, target, form.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Accept", jsonType)
}

// initialize sends the first message of a client to the MCP server.
func (p *probe) initialize(ctx context.Context, header ...string) (answer, error) {
	const message = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"pasteport-doctor","version":"1"}}}`
	return p.send(ctx, http.MethodPost, p.endpoint.String(), message,
		append([]string{"Content-Type", jsonType, "Accept", jsonType + ", " + eventStream}, header...)...)
}

// originOf returns the scheme and the host of a URL.
func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// sameOrigin reports whether both URLs have the same scheme and host.
func sameOrigin(a, b string) bool {
	first, errA := url.Parse(a)
	second, errB := url.Parse(b)
	return errA == nil && errB == nil && strings.EqualFold(originOf(first), originOf(second))
}

// isLoopback reports whether the URL names this computer.
func isLoopback(u *url.URL) bool { return uri.IsLoopbackOrigin(originOf(u)) }
