// Package remote is an oauth.BearerVerifier that asks over HTTP: a URL of the site, or an RFC 7662 introspection endpoint. The
// token goes into the request and nowhere else: what is logged never repeats a word of the answer, which might.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	answerLimit   = 4 * time.Second // below the 5 s after which nobody listens any more (B9)
	answerBytes   = 64 << 10
	idleLimit     = time.Minute
	idlePerServer = 4
)

// Transport says how the site is reached.
type Transport struct {
	outbound.Options
	Logger *slog.Logger
}

// client sends tokens to one address. It follows no redirect and uses no proxy, because both would get to see the token.
type client struct {
	http   *http.Client
	logger *slog.Logger
}

func newClient(t Transport) client {
	return client{logger: t.Logger, http: &http.Client{
		Timeout:       answerLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     t.Transport(idlePerServer, idleLimit),
	}}
}

// answer is what came back, with as much of its body as may be read.
type answer struct {
	status    int
	mediaType string
	body      []byte
}

type problem = outbound.Problem

func (c client) send(request *http.Request) (answer, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, outbound.Reason(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytes+1))
	switch {
	case err != nil:
		return answer{}, outbound.Reason(err)
	case len(body) > answerBytes:
		return answer{}, problem(fmt.Sprintf("it answered with more than %d bytes", answerBytes))
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return answer{response.StatusCode, mediaType, body}, nil
}

// opening is the head of an answer whose body nobody waits for, because it may be a stream.
type opening struct {
	status  int
	session string
	refusal []byte // the beginning of a 403, which says whether it is about the host name
}

const refusalBytes = 1 << 10

func (c client) head(request *http.Request) (opening, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return opening{}, outbound.Reason(err)
	}
	defer response.Body.Close()
	o := opening{status: response.StatusCode, session: response.Header.Get(sessionHeader)}
	if o.status == http.StatusForbidden {
		o.refusal, _ = io.ReadAll(io.LimitReader(response.Body, refusalBytes)) // without it, 403 means what it says
	}
	return o, nil
}

// isJSON accepts application/json and what is built on it (RFC 6839 §3.1).
func (a answer) isJSON() bool {
	return a.mediaType == "application/json" || strings.HasPrefix(a.mediaType, "application/") && strings.HasSuffix(a.mediaType, "+json")
}

// read is strict: one of the members twice, or in another case, is a mistake of the site that nobody should guess about.
func (a answer) read(into any, members ...string) error {
	var all map[string]jsontext.Value
	if errors.Join(json.Unmarshal(a.body, &all), json.Unmarshal(a.body, into)) != nil {
		return problem("its JSON is malformed, or a member has another type than the documentation says")
	}
	for name := range all {
		for _, member := range members {
			if name != member && strings.EqualFold(name, member) {
				return problem(fmt.Sprintf("its JSON has the member %s in another case", member))
			}
		}
	}
	return nil
}

// unavailable says in the log why the site could not be asked. The query of its address stays out, because it may hold a key.
func (c client) unavailable(ctx context.Context, request *http.Request, err error) error {
	at := url.URL{Scheme: request.URL.Scheme, Host: request.URL.Host, Path: request.URL.Path}
	c.logger.ErrorContext(ctx, "the site cannot be asked about tokens", "url", at.String(), "reason", err)
	return oauth.VerifierUnavailable(fmt.Sprintf("asking %s about a token: %v", at.String(), err))
}

// sendable keeps to what a header carries as it is: anything else might arrive as another token.
func sendable(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

var _, _ oauth.BearerVerifier = (*Endpoint)(nil), (*Introspection)(nil)
