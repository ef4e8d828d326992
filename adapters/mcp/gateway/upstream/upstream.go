// Package upstream forwards the requests of authenticated clients to an MCP server elsewhere.
// Upstream sends each request with a Credential and passes the response back unchanged, event by
// event. A *gateway.Failure is the error of an upstream without a usable response.
//
//	headers     the headers that pass, the credential, and the signed headers about the caller
//	check       the check whether the upstream works
//	transport   the timeout, the pause of an upstream that is down, errors and decompression
//	cookies     the cookies of sessions
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Upstream is one MCP server behind the gateway.
type Upstream struct {
	config       gateway.Config
	options      gateway.Options
	url          *url.URL
	presentation secret.Presentation
	next         http.RoundTripper
	cookies      *cookies
	checks       *http.Client // of Check, whose connections open streams cannot use up

	acceptsAny atomic.Pointer[bool] // whether the last random key was accepted; nil before one was sent
	proven     atomic.Bool          // a call with a person's key has succeeded

	pause    time.Duration // see pause; shorter in tests
	failed   chan struct{} // receives after a failed call
	mu       sync.Mutex
	failures int // in a row
	paused   time.Time
}

// Failed returns a channel that receives after failed calls, when a check can find out more.
func (u *Upstream) Failed() <-chan struct{} { return u.failed }

// New returns an upstream at a URL. The config must be checked.
func New(address string, c gateway.Config, o gateway.Options) (*Upstream, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	next := c.Reach.Transport(idlePerUpstream, idleLimit)
	next.DisableCompression = true
	return &Upstream{
		config:       c,
		options:      o,
		url:          target,
		presentation: c.Presentation(),
		next:         next,
		cookies:      newCookies(target, c.Host),
		checks:       c.Reach.Client(),
		pause:        pause,
		failed:       make(chan struct{}, 1),
	}, nil
}

// Forward forwards a request to the MCP endpoint. It returns oauth.ErrUnknownBearer when the
// upstream answered 401 to the host token, oauth.ErrNotFound for a session of another caller,
// oauth.ErrUnknownSession for one that the upstream does not know, or a *gateway.Failure. It has
// written nothing then, except before the failure of a response that was cut off.
func (u *Upstream) Forward(w http.ResponseWriter, r *http.Request, b message.Body, sender oauth.Caller,
	host oauth.HostToken) error {
	session, err := u.options.OpenSession(r.Header, sender)
	if err != nil {
		return err
	}
	presented, secrets, err := u.credentials(host)
	switch {
	case errors.Is(err, oauth.ErrUnknownBearer):
		return err
	case err != nil:
		return &gateway.Failure{
			Status: http.StatusBadGateway,
			Rule:   "U18",
			Text:   "The key of this connection cannot be sent to the MCP server behind this gateway",
			Cause:  err,
		}
	}
	body := b.Encode()
	out, err := http.NewRequestWithContext(r.Context(), r.Method, u.url.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, name := range u.config.Parameters {
		for _, value := range r.URL.Query()[name] {
			out.URL.RawQuery = strings.TrimPrefix(out.URL.RawQuery+"&"+name+"="+url.QueryEscape(value), "&")
		}
	}
	out.Host, out.Header = u.config.Host, u.requestHeader(r.Header, session, body != nil)
	if id := w.Header().Get(requestIDHeader); id != "" {
		out.Header.Set(requestIDHeader, id)
	}
	b.SetHeaders(out.Header)
	if r.Method != http.MethodPost || slices.Contains(repeatable, b.Only().Method) {
		out.Header[outbound.Repeatable] = nil
	}
	presented.AddTo(out)
	u.cookies.addTo(out, u.cookieKey(sender, session))
	u.identify(out, sender, body)
	answer, err := u.send(out)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := u.accept(answer, sender, session); err != nil {
		return err
	}
	maps.DeleteFunc(answer.Header, func(name string, values []string) bool { // some servers repeat a secret
		return secrets.Finds(name) || slices.ContainsFunc(values, secrets.Finds)
	})
	return u.pass(w, answer)
}

// repeatable are the methods that do no harm when the upstream gets them twice.
var repeatable = []string{
	"initialize", "server/discover", "ping", "notifications/initialized", "tools/list", "prompts/list", "prompts/get",
	"resources/list", "resources/templates/list", "resources/read", "completion/complete", "logging/setLevel",
}

// accept checks a response before it is passed back, keeps its cookies, removes the headers that do
// not pass, and binds a new session to its owner.
func (u *Upstream) accept(answer *http.Response, sender oauth.Caller, session string) error {
	if err := u.checkAnswer(answer, session); err != nil {
		if errors.As(err, new(*gateway.Failure)) {
			u.askCheck()
		}
		return err
	}
	if answer.StatusCode < 300 {
		u.proven.Store(true)
	}
	opened := answer.Header.Get(message.SessionHeader)
	if answer.Request.Method == http.MethodDelete {
		u.cookies.byKey.Remove(u.cookieKey(sender, session))
	} else {
		u.cookies.keep(u.cookieKey(sender, cmp.Or(opened, session)), answer.Cookies())
	}
	cleanAnswer(answer.Header)
	if opened == "" {
		return nil
	}
	bound, err := u.options.Sessions.BindSession(opened, sender.SessionOwner(u.options.Resource))
	answer.Header.Set(message.SessionHeader, bound)
	return err
}

// cookieKey returns the key of the cookies of a session, "" without a session.
func (u *Upstream) cookieKey(sender oauth.Caller, session string) string {
	if session == "" {
		return ""
	}
	return sender.SessionOwner(u.options.Resource) + "\x00" + session
}

// pass writes a response, and each part of one without a known length at once. It aborts the
// connection of a client that would take the beginning of a response for the whole.
func (u *Upstream) pass(w http.ResponseWriter, answer *http.Response) error {
	for name, values := range answer.Header {
		w.Header()[name] = append(w.Header()[name], values...)
	}
	w.WriteHeader(answer.StatusCode)
	to := flushing{w, answer.ContentLength < 0}
	_, err := to.Write(nil) // sends the header
	if err == nil {
		_, err = io.Copy(to, answer.Body)
	}
	r := answer.Request
	switch hasEnded := r.Context().Err() != nil; {
	case err == nil, hasEnded && message.IsEventStream(answer.Header): // a stream may end at any event
		return nil
	case errors.Is(err, errCut) && !hasEnded:
		u.askCheck()
		if r.Method != http.MethodGet { // a stream without an end breaks off when the server restarts
			return failed(http.StatusBadGateway, "cut off its response", errCut)
		}
	}
	panic(http.ErrAbortHandler)
}

// flushing sends each part at once, for a response without a known length.
type flushing struct {
	to          http.ResponseWriter
	hasNoLength bool
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := len(p), error(nil)
	if n > 0 {
		n, err = f.to.Write(p)
	}
	if err == nil && f.hasNoLength {
		err = http.NewResponseController(f.to).Flush()
	}
	return n, err
}

// checkAnswer returns an error for a response that is not passed back to the client.
func (u *Upstream) checkAnswer(answer *http.Response, session string) error {
	status := answer.StatusCode
	switch {
	case status == http.StatusUnauthorized && u.isOfSender():
		return oauth.UnknownBearer("the key was sent " + u.presentation.Sent())
	case status == http.StatusUnauthorized && session != "": // many servers answer that after a restart
		return oauth.ErrUnknownSession
	case status == http.StatusUnauthorized:
		text := "it answered 401: check credential, upstream-secret and present"
		if u.config.Credential != gateway.CredentialNone {
			text += "; the secret was sent " + u.presentation.Sent()
		}
		return failed(http.StatusBadGateway, "does not accept the gateway's credential", errors.New(text))
	case refusesHost(answer):
		return failed(http.StatusBadGateway, "does not accept the host name of its requests",
			fmt.Errorf("it answered %d: %s", status, outbound.HostAdvice))
	case status < 200:
		return failed(http.StatusBadGateway, "switches protocols", nil)
	case status < 300 && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html"):
		return failed(http.StatusBadGateway, "answered with a web page", nil)
	case status >= 300 && status < 400:
		return failed(http.StatusBadGateway, "redirects, which is not followed",
			errors.New("it redirects "+outbound.Target(answer)+": set upstream to the address of the MCP server"))
	case status >= 500 && !isJSONRPCError(answer):
		failure := failed(http.StatusBadGateway, "has failed", fmt.Errorf("it answered %d", status))
		if status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout { // they allow a retry
			failure.Status = status
		}
		failure.RetryAfter = retryAfter(answer.Header)
		return failure
	}
	return nil
}

// Check asks the server whether it works: with the credential for all callers, or without a key. A
// key that no server has issued is sent until the server has refused it, to find a server that
// accepts any, and not again, because servers lock out addresses that send many wrong keys.
func (u *Upstream) Check(ctx context.Context) check.Result {
	var presented secret.Credentials
	var err error
	known := u.acceptsAny.Load()
	sendsRandom := u.isOfSender() && (known == nil || *known)
	switch {
	case sendsRandom:
		presented, err = u.presentation.Render(u.config.HostFields.Sample(check.RandomKey))
	case !u.isOfSender():
		presented, _, err = u.credentials(oauth.HostToken{})
	}
	if err != nil {
		return check.Unknown
	}
	found := check.Probe{
		Client: u.checks,
		URL:    u.url.String(),
		Host:   u.config.Host,
		Sign:   func(r *http.Request, body []byte) { u.identify(r, oauth.Caller{}, body) },
	}.Run(ctx, presented)
	switch {
	case found.State == check.Down || ctx.Err() != nil, !u.isOfSender() && found.State != check.Refuses:
		return found
	case u.config.Credential == gateway.CredentialNone:
		return check.Mistake("it requires a key, but credential is none", "choose credential host-token or static")
	case !u.isOfSender():
		return check.Mistake("it refuses the secret for all callers, sent "+u.presentation.Sent(),
			"check upstream-secret and present")
	case sendsRandom:
		acceptsAny := found.State == check.Works
		u.acceptsAny.Store(&acceptsAny)
	}
	acceptsAny := *u.acceptsAny.Load() // here calls carry people's keys, and a check has stored this
	switch {                           // what it means for calls with the keys of people
	case found.IsProblem():
	case acceptsAny && u.config.VerifiesTokens:
		return check.AcceptsAny
	case acceptsAny:
		found.Cause += ", accepts any key: only the verifier checks keys"
	case found.State == check.Refuses:
		found.Cause += ", sent " + u.presentation.Sent()
		if u.presentation.IsSet() && !u.proven.Load() {
			found.Cause += "; no key has shown yet that it reads keys there"
		}
	}
	return found
}
