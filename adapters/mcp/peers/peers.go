// Package peers passes a request to the replica of the service that has its session, whose sealed
// address is in the id of the session. Forward adds a pass in a header: a sealed description of the
// caller and the request. The other replica reads it with Open, and answers without checking the
// caller again.
package peers

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	// Header has the sealed Pass of a request, and in the response its Answer.
	Header = "Pasteport-Peer"

	addresses   = "addresses" // name of the seal of an address
	dialTimeout = 2 * time.Second
	// freshness is the maximum difference between the time of a pass and the clock of its receiver.
	freshness = 30 * time.Second
	// goneAfter is how long a replica may fail before its sessions are lost: the address of a pod
	// that was deleted often drops packets. Failures more than a minute apart are two outages.
	goneAfter = 10 * time.Second
	// outagePause is the time without a failure after which the next one begins another outage.
	outagePause = time.Minute
)

// Options configure Peers. All fields are required.
type Options struct {
	Address  string         // where other replicas reach this one; see Check
	Resource oauth.Resource // its host is in the certificate of an https address
	Keys     seal.KeyRing
	Now      func() time.Time
	Logger   *slog.Logger
}

// Peers are the replicas of one MCP server. It binds the ids of sessions to their owners and to
// this replica.
type Peers struct {
	Options
	transport *http.Transport
	outages   sync.Map // by address
}

// outage has the times of the first and the last of some failures.
type outage struct{ began, last time.Time }

// New returns the peers of a replica.
func New(o Options) *Peers {
	public, _ := url.Parse(o.Resource.String())
	dialer := net.Dialer{Timeout: dialTimeout}
	// Ends the streams of a machine that has lost its power or network.
	dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second}
	return &Peers{Options: o, transport: &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     &tls.Config{ServerName: public.Hostname(), MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTimeout,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     2 * time.Second, // because a dead machine swallows what an idle connection sends
	}}
}

// Check checks the address of a replica.
func Check(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Scheme+"://"+u.Host != address ||
		u.Hostname() == "" || u.Port() == "" {
		return errors.New("write the address where the other replicas reach this one, as http://host:port or " +
			"https://host:port, for example http://10.0.1.7:8080")
	}
	return nil
}

// BindSession returns the id of a session of this replica for clients.
func (p *Peers) BindSession(session, owner string) (string, error) {
	box, err := p.Keys.SealMessage(addresses, []byte(p.Address))
	if err != nil {
		return "", err
	}
	return p.Keys.BindSession(base64.RawURLEncoding.EncodeToString(box)+"."+session, owner)
}

// OpenSession returns the id of a session in this replica; ok is false for a session of another
// owner or another replica.
func (p *Peers) OpenSession(bound, owner string) (session string, ok bool, err error) {
	address, session, err := p.locate(bound, owner)
	return session, address == p.Address, err
}

// Elsewhere returns the address of the replica that has a session of the caller, "" for a session
// of this one or of another caller. A client cannot choose it, because the id is authenticated.
func (p *Peers) Elsewhere(bound string, caller oauth.Caller) string {
	if address, _, _ := p.locate(bound, caller.SessionOwner(p.Resource)); address != p.Address {
		return address
	}
	return ""
}

func (p *Peers) locate(bound, owner string) (address, session string, err error) {
	opened, ok, err := p.Keys.OpenSession(bound, owner)
	name, session, isNamed := strings.Cut(opened, ".")
	if err != nil || !ok || !isNamed {
		return "", "", err
	}
	box, _ := base64.RawURLEncoding.DecodeString(name)
	plain, err := p.Keys.OpenMessage(addresses, box)
	return string(plain), session, err
}

// Pass describes an authorized request and its caller. It contains no token.
type Pass struct {
	Caller    oauth.Caller
	Host      oauth.Digest // of the host token
	RequestID string       // for the audit
	Session   string       // its id for clients

	Client         string // of the Caller, which JSON does not read
	Scopes         []string
	Method, Target string
	Digest         [sha256.Size]byte // of the body
	At             time.Time
	Answer         string // only a replica with the server secret can return it
}

func (p *Peers) seal(pass *Pass, r *http.Request, body []byte, to string) (string, error) {
	pass.Client = pass.Caller.Client.String()
	pass.Scopes = pass.Caller.Scopes.Values()
	pass.Method, pass.Target, pass.Digest = r.Method, r.URL.RequestURI(), sha256.Sum256(body)
	pass.At, pass.Answer = p.Now(), rand.Text()
	plain, err := json.Marshal(pass)
	if err != nil {
		return "", err
	}
	box, err := p.Keys.SealMessage(to, plain)
	return base64.StdEncoding.EncodeToString(box), err
}

// Open returns the pass of a request in a session of this replica. It is false for a request of a
// client, and for a pass that is too old or was made for another request. The caller must compare
// the body with the Digest.
func (p *Peers) Open(r *http.Request, session string) (pass Pass, ok bool) {
	if p == nil || r.Header[Header] == nil {
		return pass, false
	}
	box, _ := base64.StdEncoding.DecodeString(r.Header.Get(Header))
	r.Header.Del(Header)
	plain, err := p.Keys.OpenMessage(p.Address, box)
	if err != nil || json.Unmarshal(plain, &pass) != nil {
		return Pass{}, false
	}
	pass.Caller.Client = oauth.RestoreClientID(pass.Client)
	pass.Caller.Scopes = oauth.NewScopes(pass.Scopes...)
	_, isOwn, err := p.OpenSession(session, pass.Caller.SessionOwner(p.Resource))
	return pass, err == nil && isOwn && pass.Session == session && pass.Method == r.Method &&
		pass.Target == r.URL.RequestURI() && p.Now().Sub(pass.At).Abs() <= freshness
}

// Headers returns the headers that reach a session wherever it is. None of them has a token.
func Headers(header http.Header) http.Header {
	kept := http.Header{}
	for name, values := range header {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains([]string{"Accept", "Accept-Language", "Content-Type",
			"Last-Event-Id", "Traceparent", "Tracestate", "User-Agent", "X-Request-Id"}, name) {
			kept[name] = values
		}
	}
	return kept
}

// Forward passes a request to the replica at an address, and its response to w. It writes nothing
// for a client that has gone.
func (p *Peers) Forward(w http.ResponseWriter, r *http.Request, body []byte, pass Pass, to string) {
	sealed, err := p.seal(&pass, r, body, to)
	if err != nil {
		p.unavailable(w, r, to, err)
		return
	}
	target, _ := url.Parse(to) // it was checked there
	proxy := httputil.ReverseProxy{
		Transport:     p.transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(p.Logger.Handler(), slog.LevelDebug), // of responses that have begun
		Rewrite: func(proxied *httputil.ProxyRequest) {
			out := proxied.Out
			out.URL.Scheme, out.URL.Host = target.Scheme, target.Host
			out.Header = Headers(proxied.In.Header)
			out.Header.Set(Header, sealed)
			out.ContentLength = int64(len(body))
			out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			out.Body, _ = out.GetBody()
			out.Trailer = nil
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.Header.Get(Header) != pass.Answer {
				return errors.New("the server there does not accept the request: its clock or server secret differs, " +
					"or it is not a replica")
			}
			p.outages.Delete(to)
			answer.Header.Del(Header)
			for name := range w.Header() { // which both have set
				answer.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return
			}
			known, _ := p.outages.Load(to)
			was, _ := known.(outage)
			now := p.Now()
			if now.Sub(was.last) > outagePause {
				was.began = now
			}
			p.outages.Store(to, outage{was.began, now})
			if errors.Is(err, syscall.ECONNREFUSED) || now.Sub(was.began) >= goneAfter {
				stream.RefuseSession(w, r, "R4", "the replica of the session has gone")
				return
			}
			p.unavailable(w, r, to, err)
		},
	}
	proxy.ServeHTTP(w, r)
}

func (p *Peers) unavailable(w http.ResponseWriter, r *http.Request, to string, err error) {
	p.Logger.WarnContext(r.Context(), "cannot reach the replica of a session", "address", to, "error", err)
	stream.Unavailable(w, "The session cannot be reached now")
}
