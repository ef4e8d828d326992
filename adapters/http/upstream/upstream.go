// Package upstream is the gateway's way to an MCP server elsewhere, in any language: what the guard let pass is sent on with the
// upstream's own credential, and the answer comes back as it is, event by event.
//
//	headers      what of a request goes on, and what of an answer comes back (U5, U15)
//	credential   as whom the upstream is asked: the host token, a fixed secret, or nobody (U6, U7)
//	session      names of sessions, bound to their owner on the way out (U12)
//	endpoint     the first event of HTTP+SSE, which says where to post (U13)
//	transport    how long the upstream may take, and when it is not even asked (U9, U10)
package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Sessions binds the names of sessions to their owners; seal.KeyRing is one.
type Sessions interface {
	BindSession(session, owner string) (string, error)
	OpenSession(bound, owner string) (session string, ok bool, err error)
}

// Options say where the upstream is and how it is asked.
type Options struct {
	URL         string // of its MCP endpoint, which outbound.Options.CheckURL has passed
	Host        string // that it is asked under; "" for that of the URL
	MessagePath string // where its clients post the messages of HTTP+SSE, at the gateway
	Credential  Credential
	Headers     []string // of requests that go on, besides those of MCP
	Sessions    Sessions
	Resource    oauth.Resource // that clients call, for which sessions have owners
	Patience    time.Duration  // until the answer to a POST begins; 5 minutes

	outbound.Options
	Logger *slog.Logger
}

const defaultPatience = 5 * time.Minute

// Upstream is one MCP server behind the gateway.
type Upstream struct {
	options Options
	url     *url.URL
	passes  func(header string) bool
	proxy   *httputil.ReverseProxy
}

// New expects options that have been checked.
func New(o Options) (*Upstream, error) {
	target, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	u := &Upstream{options: o, url: target, passes: passing(o.Headers)}
	u.proxy = &httputil.ReverseProxy{
		Transport: newTransport(o, restLimit), BufferPool: &buffers{}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: u.rewrite, ModifyResponse: u.accept,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { exchangeOf(r).failed = err },
	}
	return u, nil
}

// exchange is one request on its way to the upstream and its answer on the way back.
type exchange struct {
	target    *url.URL
	sender    oauth.Caller
	host      oauth.HostToken
	session   string // as the upstream calls it
	ofSession bool   // the request names a session, in its header or by its address
	answerID  string // X-Request-Id of our answer
	body      []byte
	failed    error
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// Forward sends a request on to the endpoint. While nothing is written it returns oauth.ErrUnknownBearer when the upstream answered 401
// to the host token, oauth.ErrNotFound for a session that is not the sender's, oauth.ErrUnknownSession for one that the upstream does
// not know, or a *Failure.
func (u *Upstream) Forward(w http.ResponseWriter, r *http.Request, body []byte, sender oauth.Caller, host oauth.HostToken) error {
	return u.send(w, r, &exchange{target: u.url, sender: sender, host: host, body: body})
}

// Deliver sends a message of HTTP+SSE on to where its stream said, like Forward.
func (u *Upstream) Deliver(w http.ResponseWriter, r *http.Request, body []byte, sender oauth.Caller, host oauth.HostToken) error {
	target, err := u.openEndpoint(r.URL.Query(), u.owner(sender))
	if err != nil {
		return err
	}
	return u.send(w, r, &exchange{target: target, sender: sender, host: host, body: body, ofSession: true})
}

func (u *Upstream) send(w http.ResponseWriter, r *http.Request, x *exchange) (err error) {
	if x.session, err = u.openSession(r.Header, u.owner(x.sender)); err != nil {
		return err
	}
	x.ofSession = x.ofSession || x.session != ""
	x.answerID = w.Header().Get(requestIDHeader)
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	defer func() {
		cut := recover()
		if cut == nil {
			return
		}
		if cut != http.ErrAbortHandler || r.Context().Err() == nil || !isEventStream(w.Header()) { //nolint:errorlint // the very value that net/http knows
			panic(cut)
		}
		err = nil // a stream may end at any event: here the grant did, or the service
	}()
	u.proxy.ServeHTTP(w, r.WithContext(ctx))
	return x.failed
}

// rewrite builds the request anew, so that nothing goes on that nobody has thought of (U5).
func (u *Upstream) rewrite(p *httputil.ProxyRequest) {
	x := exchangeOf(p.In)
	p.Out.URL, p.Out.Host = x.target, u.options.Host
	p.Out.Header = u.requestHeader(p.Out.Header, x)
	p.Out.Body, p.Out.ContentLength, p.Out.GetBody, p.Out.TransferEncoding = nil, 0, nil, nil
	if x.body != nil {
		p.Out.ContentLength = int64(len(x.body))
		p.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		p.Out.Body, _ = p.Out.GetBody()
	}
	u.options.Credential.present(p.Out, x)
}

// accept judges the head of an answer before anything of it is passed on.
func (u *Upstream) accept(answer *http.Response) error {
	x := exchangeOf(answer.Request)
	if err := u.judge(answer, x); err != nil {
		return err
	}
	cleanAnswer(answer)
	for i, session := range answer.Header.Values(sessionHeader) {
		bound, err := u.options.Sessions.BindSession(session, u.owner(x.sender))
		if err != nil {
			return err
		}
		answer.Header[sessionHeader][i] = bound
	}
	if answer.Request.Method == http.MethodGet && x.session == "" && isEventStream(answer.Header) {
		u.announce(answer, x)
	}
	return nil
}

// judge returns what an answer means that is not for the client.
func (u *Upstream) judge(answer *http.Response, x *exchange) error {
	status := answer.StatusCode
	switch {
	case status == http.StatusUnauthorized && u.options.Credential.isSenders():
		return oauth.ErrUnknownBearer
	case status == http.StatusUnauthorized && x.ofSession: // many servers answer it after a restart
		return oauth.ErrUnknownSession
	case status == http.StatusUnauthorized:
		return failed(http.StatusBadGateway, "does not accept the gateway's credential", errors.New("it answered 401: correct credential and upstream-secret"))
	case refusesHost(answer):
		return failed(http.StatusBadGateway, "does not know the host name that it is asked under", errors.New("it answered "+answer.Status+": "+outbound.HostAdvice))
	case status < 200:
		return failed(http.StatusBadGateway, "wants to change the protocol", nil)
	case status >= 300 && status < 400:
		return failed(http.StatusBadGateway, "redirects, and is not followed", redirectsTo(answer, u.url))
	case status >= 500 && !saysWhy(answer):
		return failed(statusFor(status), "has failed", errors.New("it answered "+answer.Status))
	}
	return nil
}

// redirectsTo names the address when it differs by a slash only, which is what most redirects are about; any other may repeat what it
// was asked with.
func redirectsTo(answer *http.Response, from *url.URL) error {
	to, err := answer.Location()
	if err != nil {
		return errors.New("it redirects to no address")
	}
	if to.Host != from.Host || strings.Trim(to.Path, "/") != strings.Trim(from.Path, "/") {
		return errors.New("it redirects elsewhere: write the address of the MCP server itself")
	}
	to.RawQuery, to.Fragment, to.User = "", "", nil
	return errors.New("it redirects to " + to.String() + ": write that as the upstream")
}
