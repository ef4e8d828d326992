package features_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// Front is a proxy in front of a real deployment that publishes the proxy's address. It breaks one
// thing.
type Front struct {
	world  *World
	server *httptest.Server
	issuer string
	tls    bool
	asks   []string // doctor's flags besides the URL
	adjust func(*service.Config)

	wrap   func(http.Handler) http.Handler
	change []func(*http.Response) error
}

// NewFront starts a deployment behind a proxy; both end with the spec.
func NewFront(spoil ...func(*Front)) *Front {
	GinkgoHelper()
	f := &Front{server: httptest.NewUnstartedServer(nil), wrap: func(next http.Handler) http.Handler { return next }}
	for _, apply := range spoil {
		apply(f)
	}
	if f.issuer == "" {
		f.issuer = f.URL()
	}
	f.world = NewWorld(func(config *service.Config) {
		config.Issuer = f.issuer
		if f.adjust != nil {
			f.adjust(config)
		}
	})
	inner := must(url.Parse(f.world.Issuer))
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(inner) },
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ModifyResponse: func(r *http.Response) error {
			for _, change := range f.change {
				if err := change(r); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.server.Config.Handler = f.wrap(proxy)
	f.server.Config.ErrorLog = proxy.ErrorLog
	if f.tls {
		f.server.StartTLS()
	} else {
		f.server.Start()
	}
	DeferCleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// URL is the public address of the deployment.
func (f *Front) URL() string {
	scheme := "http://"
	if f.tls {
		scheme = "https://"
	}
	return scheme + f.server.Listener.Addr().String()
}

// Options of a front.

func overTLS(f *Front) { f.tls = true }

func asking(args ...string) func(*Front) {
	return func(f *Front) { f.asks = append(f.asks, args...) }
}

// instead makes serve handle every request; next is the rest of the proxy.
func (f *Front) instead(serve func(next http.Handler, w http.ResponseWriter, r *http.Request)) {
	inner := f.wrap
	f.wrap = func(next http.Handler) http.Handler {
		next = inner(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(next, w, r) })
	}
}

// before may change every request before it is forwarded.
func (f *Front) before(see func(*http.Request)) {
	f.instead(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		see(r)
		next.ServeHTTP(w, r)
	})
}

// answering replaces the handler of one endpoint.
func answering(method, path string, serve http.HandlerFunc) func(*Front) {
	return func(f *Front) {
		f.instead(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Method == method && r.URL.Path == path {
				serve(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// status makes an endpoint respond with a status and headers only.
func status(method, path string, code int, header ...string) func(*Front) {
	return answering(method, path, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	})
}

// changing changes the responses of a path; "" means every path.
func changing(path string, change func(*http.Response)) func(*Front) {
	return func(f *Front) {
		f.change = append(f.change, func(r *http.Response) error {
			if path == "" || r.Request.URL.Path == path {
				change(r)
			}
			return nil
		})
	}
}

func header(path, name string, values ...string) func(*Front) {
	return changing(path, func(r *http.Response) {
		r.Header.Del(name)
		for _, value := range values {
			r.Header.Add(name, value)
		}
	})
}

func rewriting(path string, rewrite func(string) string) func(*Front) {
	return changing(path, func(r *http.Response) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		text := rewrite(string(body))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.Header.Del("Content-Length")
	})
}

// member sets a member of a JSON document, or removes it when the value is nil.
func member(path, name string, value any) func(*Front) {
	return rewriting(path, func(text string) string {
		members := map[string]any{}
		if json.Unmarshal([]byte(text), &members) != nil {
			return text
		}
		members[name] = value
		if value == nil {
			delete(members, name)
		}
		changed, _ := json.Marshal(members)
		return string(changed)
	})
}

// secrets records the secrets that passed through the proxy and must not be printed.
type secrets struct {
	mu    sync.Mutex
	texts []string
}

func (s *secrets) keep(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if text != "" && !slices.Contains(s.texts, text) {
			s.texts = append(s.texts, text)
		}
	}
}

func (s *secrets) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// listen records the codes, verifiers and tokens of a login.
func (s *secrets) listen(f *Front) {
	f.before(func(r *http.Request) {
		if form := formOf(r); !strings.Contains(form.Get("code"), "doctor") {
			s.keep(form.Get("code"), form.Get("code_verifier"))
		}
	})
	rewriting("/oauth/token", func(text string) string {
		var tokens Tokens
		if json.Unmarshal([]byte(text), &tokens) == nil {
			s.keep(tokens.Access, tokens.Refresh)
		}
		return text
	})(f)
}

// formOf returns the form of a token request and keeps the body readable.
func formOf(r *http.Request) url.Values {
	if r.URL.Path != "/oauth/token" {
		return nil
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	return form
}

func both(spoil ...func(*Front)) func(*Front) {
	return func(f *Front) {
		for _, apply := range spoil {
			apply(f)
		}
	}
}

// ownOrigin sends the deployment's own origin, which is always allowed.
func ownOrigin(f *Front) { asking("--origin", f.URL())(f) }

// dated shifts the clock of the responses.
func dated(off time.Duration) func(*Front) {
	return changing("", func(r *http.Response) {
		r.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	})
}

// unchallenged responds to messages without a token with another status.
func unchallenged(code int) func(*Front) {
	return changing("/mcp", func(r *http.Response) {
		if r.Request.Header.Get("Authorization") == "" && r.Request.Method == http.MethodPost {
			r.StatusCode = code
			r.Header.Set("Location", "/login")
		}
	})
}

// originsIgnored responds to messages of web pages without checking the origin.
func originsIgnored(f *Front) {
	f.before(func(r *http.Request) {
		if r.URL.Path == "/mcp" {
			r.Header.Del("Origin")
		}
	})
}

// preflightAllows allows web pages to send these headers only.
func preflightAllows(path, headers string) func(*Front) {
	return changing(path, func(r *http.Response) {
		if r.Request.Method == http.MethodOptions {
			r.Header.Set("Access-Control-Allow-Headers", headers)
		}
	})
}

// hangUp ends the connection without a response.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// granted changes the responses with tokens.
func granted(change func(*http.Response)) func(*Front) {
	return changing("/oauth/token", func(r *http.Response) {
		if r.Request.Method == http.MethodPost && r.StatusCode == http.StatusOK {
			change(r)
		}
	})
}

// withoutToken forwards messages without their token.
func withoutToken(f *Front) {
	f.before(func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/mcp" &&
			!strings.Contains(r.Header.Get("Authorization"), "doctor") {
			r.Header.Del("Authorization")
		}
	})
}

func refusedRefresh(f *Front) {
	f.instead(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if formOf(r).Get("grant_type") != "refresh_token" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
	})
}

func rewritten(path, name, old, replacement string) func(*Front) {
	return changing(path, func(r *http.Response) {
		r.Header.Set(name, strings.Replace(r.Header.Get(name), old, replacement, 1))
	})
}

// slashedIssuer adds a trailing slash to the issuer in both documents.
func slashedIssuer(f *Front) {
	member(resourcePath, "authorization_servers", []string{f.URL() + "/"})(f)
	member(serverPath, "issuer", f.URL()+"/")(f)
}

// back changes the parameters of the redirect to the client.
func back(change func(url.Values)) func(*Front) {
	return changing("/oauth/authorize", func(r *http.Response) {
		base, rawQuery, found := strings.Cut(r.Header.Get("Location"), "?")
		query, err := url.ParseQuery(rawQuery)
		if !found || err != nil {
			return
		}
		change(query)
		r.Header.Set("Location", base+"?"+query.Encode())
	})
}

// certified serves with a certificate for this address that is valid until then.
func certified(address string, until time.Time) *tls.Config {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.ParseIP(address)},
		NotBefore:    time.Now().AddDate(-1, 0, 0),
		NotAfter:     until,
	}
	certificate := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		MinVersion: tls.VersionTLS12}
}
