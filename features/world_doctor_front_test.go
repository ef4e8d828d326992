package features_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
	inner, err := url.Parse(f.world.Issuer)
	Expect(err).NotTo(HaveOccurred())
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

// header sets or removes a header in the responses of a path.
func header(path, name string, values ...string) func(*Front) {
	return changing(path, func(r *http.Response) {
		r.Header.Del(name)
		for _, value := range values {
			r.Header.Add(name, value)
		}
	})
}

// rewriting changes the bodies of the responses of a path.
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
