// Package upstream forwards the requests of authenticated clients to an MCP server elsewhere.
// Upstream sends each request with a Credential and passes the response back unchanged, event by
// event. A *gateway.Failure is the error of an upstream without a usable response.
//
//	headers      the headers of requests and responses that pass
//	credential   the credential of a request, and the signed headers that identify the caller
//	sessions     session ids, bound to their owner
//	check        the check whether the upstream works
//	transport    the timeout, the circuit breaker, and the errors of the upstream
//	cookies      the cookies of sessions
//	body         a body that is compressed or breaks off
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
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
	passes       func(header string) bool
	proxy        *httputil.ReverseProxy
	transport    *transport
	cookies      *cookies
	checks       *http.Client // of Check

	acceptsAny atomic.Pointer[bool] // what the first check has shown; nil before it
	proven     atomic.Bool          // a call had success with the key of a person
}

// Health returns an error while the upstream gets no requests, because it has failed repeatedly.
func (u *Upstream) Health() error { return u.transport.health() }

// Failed returns a channel that receives after failed calls, when a check can find out more.
func (u *Upstream) Failed() <-chan struct{} { return u.transport.failed }

// New returns an upstream at a URL. The config must be checked.
func New(address string, c gateway.Config, o gateway.Options) (*Upstream, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	transport := newTransport(c, openTimeout)
	u := &Upstream{
		config:       c,
		options:      o,
		url:          target,
		presentation: c.Presentation(),
		passes:       forwards(c.Headers),
		transport:    transport,
		cookies:      newCookies(target, c.Host),
		checks:       newChecks(c),
	}
	u.proxy = &httputil.ReverseProxy{
		Transport:      transport,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite:        u.rewrite,
		ModifyResponse: u.accept,
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, err error) { forwardingOf(r).failed = err },
	}
	return u, nil
}

// Forward forwards a request to the MCP endpoint. It returns oauth.ErrUnknownBearer when the
// upstream answered 401 to the host token, oauth.ErrNotFound for a session of another caller,
// oauth.ErrUnknownSession for one that the upstream does not know, or a *gateway.Failure. It has
// written nothing then, except before the failure of a response that was cut off.
func (u *Upstream) Forward(w http.ResponseWriter, r *http.Request, b message.Body, sender oauth.Caller,
	host oauth.HostToken) error {
	return u.send(w, r, &forwarding{
		sender:       sender,
		host:         host,
		body:         b.Encode(),
		setName:      b.SetName,
		isRepeatable: r.Method != http.MethodPost || slices.Contains(repeatable, b.Only().Method),
	})
}

func (u *Upstream) send(w http.ResponseWriter, r *http.Request, x *forwarding) (err error) {
	if x.session, err = u.openSession(r.Header, u.owner(x.sender)); err != nil {
		return err
	}
	x.credentials, err = u.credentials(x.host)
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
	x.key = sessionKey(u.owner(x.sender), x.session)
	x.requestID = w.Header().Get(requestIDHeader)
	ctx := context.WithValue(r.Context(), forwardingKey{}, x)
	defer func() {
		cut := recover()
		switch {
		case x.cut != nil:
			err = failed(http.StatusBadGateway, "cut off its response", x.cut)
			return
		case cut == nil:
			return
		}
		//nolint:errorlint // net/http compares the value
		if cut != http.ErrAbortHandler || r.Context().Err() == nil || !message.IsEventStream(w.Header()) {
			panic(cut)
		}
		err = nil // a stream may end at any event: the grant or the service has ended
	}()
	u.proxy.ServeHTTP(w, r.WithContext(ctx))
	return x.failed
}

// rewrite builds a new request from the listed parts, so that nothing else is forwarded.
func (u *Upstream) rewrite(p *httputil.ProxyRequest) {
	x := forwardingOf(p.In)
	to := *u.url
	for _, name := range u.config.Parameters {
		for _, value := range p.In.URL.Query()[name] {
			to.RawQuery = strings.TrimPrefix(to.RawQuery+"&"+name+"="+url.QueryEscape(value), "&")
		}
	}
	p.Out.URL, p.Out.Host = &to, u.config.Host
	p.Out.Header = u.requestHeader(p.Out.Header, x)
	x.setName(p.Out.Header)
	p.Out.Body, p.Out.ContentLength, p.Out.GetBody, p.Out.TransferEncoding = nil, 0, nil, nil
	if x.body != nil {
		p.Out.ContentLength = int64(len(x.body))
		p.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		p.Out.Body, _ = p.Out.GetBody()
	}
	if x.isRepeatable {
		p.Out.Header[outbound.Repeatable] = nil
	}
	x.credentials.AddTo(p.Out)
	u.cookies.addTo(p.Out, x.key)
	u.identify(p.Out, x.sender, x.body)
}

// repeatable are the methods that do no harm when the upstream gets them twice.
var repeatable = []string{
	"initialize", "server/discover", "ping", "notifications/initialized", "tools/list", "prompts/list", "prompts/get",
	"resources/list", "resources/templates/list", "resources/read", "completion/complete", "logging/setLevel",
}

// accept checks the header of a response before it is passed back.
func (u *Upstream) accept(answer *http.Response) error {
	x := forwardingOf(answer.Request)
	if err := u.checkAnswer(answer, x); err != nil {
		if errors.As(err, new(*gateway.Failure)) {
			u.transport.askCheck()
		}
		return err
	}
	if answer.StatusCode < 300 {
		u.proven.Store(true)
	}
	u.keepCookies(answer, x)
	cleanAnswer(answer)
	for i, session := range answer.Header.Values(message.SessionHeader) {
		bound, err := u.options.Sessions.BindSession(session, u.owner(x.sender))
		if err != nil {
			return err
		}
		answer.Header[message.SessionHeader][i] = bound
	}
	return nil
}

// keepCookies keeps the cookies of a session.
func (u *Upstream) keepCookies(answer *http.Response, x *forwarding) {
	if answer.Request.Method == http.MethodDelete {
		u.cookies.forget(x.key)
		return
	}
	u.cookies.keep(cmp.Or(sessionKey(u.owner(x.sender), answer.Header.Get(message.SessionHeader)), x.key),
		answer.Cookies())
}

// checkAnswer returns an error for a response that is not passed back to the client.
func (u *Upstream) checkAnswer(answer *http.Response, x *forwarding) error {
	status := answer.StatusCode
	switch {
	case status == http.StatusUnauthorized && u.isOfSender():
		return oauth.UnknownBearer("the key was sent " + u.sent())
	case status == http.StatusUnauthorized && x.session != "": // many servers answer that after a restart
		return oauth.ErrUnknownSession
	case status == http.StatusUnauthorized:
		text := "it answered 401: check credential, upstream-secret and present"
		if sent := u.sent(); sent != "" {
			text += "; the secret was sent " + sent
		}
		return failed(http.StatusBadGateway, "does not accept the gateway's credential", errors.New(text))
	case refusesHost(answer):
		return failed(http.StatusBadGateway, "does not accept the host name of its requests",
			fmt.Errorf("it answered %d: %s", status, outbound.HostAdvice))
	case status < 200:
		return failed(http.StatusBadGateway, "switches protocols", nil)
	case status >= 300 && status < 400:
		return failed(http.StatusBadGateway, "redirects, which is not followed",
			errors.New("it redirects "+outbound.Target(answer)+": set upstream to the address of the MCP server"))
	case status >= 500 && !isJSONRPCError(answer):
		failure := failed(statusFor(status), "has failed", fmt.Errorf("it answered %d", status))
		failure.RetryAfter = retryAfter(answer.Header)
		return failure
	}
	return nil
}
