package cimd

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// connectProxy is an HTTP proxy on loopback that connects every CONNECT to one site.
type connectProxy struct {
	*httptest.Server
	connections atomic.Int32
	mu          sync.Mutex
	requests    []*http.Request
}

func newConnectProxy(to *site, start func(*httptest.Server)) *connectProxy {
	p := &connectProxy{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, r)
		p.mu.Unlock()
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		tunnel(w, to.Listener.Addr().String())
	}))
	p.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.connections.Add(1)
		}
	}
	p.Config.ErrorLog = quiet
	start(p.Server)
	DeferCleanup(p.Close)
	return p
}

// tunnel copies bytes in both directions until one side closes.
func tunnel(w http.ResponseWriter, address string) {
	out, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	in, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = out.Close()
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	_, _ = io.Copy(in, out)
	_ = in.Close()
}

func (p *connectProxy) at(user *url.Userinfo) *url.URL {
	address, err := url.Parse(p.URL)
	Expect(err).NotTo(HaveOccurred())
	address.User = user
	return address
}

var _ = Describe("Reaching a client's site through the operator's proxy", Label("C51"), func() {
	var (
		publisher *site
		proxy     *connectProxy
		options   Config
		bounds    limits
	)
	example := oauth.RestoreClientID("https://example.com/client.json")

	BeforeEach(func() {
		publisher, bounds = newSite(), patient()
		publisher.respond(http.StatusOK, document(example.String()))
		proxy = newConnectProxy(publisher, (*httptest.Server).Start)
		options = Config{
			Now:      newClock().now,
			RootCAs:  publisher.roots(),
			Options:  Options{Proxy: proxy.at(nil)},
			Resolver: newNameServer("1.1.1.1").resolver(),
		}
	})

	ask := func(ctx context.Context, id oauth.ClientID) error {
		_, err := openDirectory(options, bounds).Client(ctx, id, "")
		return err
	}

	It("uses TLS with an https proxy, and HTTP/1.1 even if the proxy supports HTTP/2", func(ctx SpecContext) {
		proxy = newConnectProxy(publisher, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
		options.Proxy = proxy.at(url.UserPassword("me", "s3cret"))
		Expect(ask(ctx, example)).To(Succeed())
		Expect(proxy.requests[0].Header).To(HaveKey("Proxy-Authorization"))
	})

	It("sends nothing to an https proxy with an untrusted certificate", func(ctx SpecContext) {
		proxy = newConnectProxy(publisher, (*httptest.Server).StartTLS)
		options.Proxy, options.RootCAs = proxy.at(nil), x509.NewCertPool()
		Expect(ask(ctx, example)).To(MatchError(client.ErrUnreachable))
		Expect(proxy.requests).To(BeEmpty())
	})

	It("is refused before the proxy is dialled", Label("C7", "C18"), func(ctx SpecContext) {
		for _, addresses := range [][]string{{"10.0.0.1"}, {"1.1.1.1", "10.0.0.1"}, nil} {
			options.Resolver = newNameServer(addresses...).resolver()
			Expect(ask(ctx, example)).To(MatchError(ContainSubstring("before the proxy is dialled")), "%q", addresses)
		}
		options.Resolver = newNameServer("1.1.1.1").resolver()
		Expect(ask(ctx, oauth.RestoreClientID("https://example.com:8443/client.json"))).
			To(MatchError(ContainSubstring("before the proxy is dialled")))
		Expect(proxy.connections.Load()).To(BeZero())
	})

	It("reports a refusal of the proxy", func(ctx SpecContext) {
		proxy.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusProxyAuthRequired)
		})
		options.Proxy = proxy.at(url.UserPassword("me", "s3cret"))
		Expect(ask(ctx, example)).
			To(MatchError(And(ContainSubstring("the proxy refuses to connect: 407"), Not(ContainSubstring("s3cret")))))
	})
})
