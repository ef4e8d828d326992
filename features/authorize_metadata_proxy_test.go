package features_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// beyond is an address of the clients' site that only the proxy can reach.
const beyond = "https://127.0.0.1:1"

// EgressProxy is an HTTP proxy on loopback that routes beyond to the clients' site. It may require
// a password.
type EgressProxy struct {
	Password string
	Connects atomic.Int64 // connections to the proxy
	server   *httptest.Server
	site     *ClientSite
}

// NewEgressProxy starts a proxy that ends with the spec.
func NewEgressProxy() *EgressProxy {
	p := &EgressProxy{}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.Connects.Add(1)
		}
	}
	p.server.Start()
	DeferCleanup(p.server.Close)
	return p
}

// URL returns the proxy's URL, with the user and password if any.
func (p *EgressProxy) URL() *url.URL {
	GinkgoHelper()
	u, err := url.Parse(p.server.URL)
	Expect(err).NotTo(HaveOccurred())
	if p.Password != "" {
		u.User = url.UserPassword("pasteport", p.Password)
	}
	return u
}

func (p *EgressProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	proof := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	proof.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	if _, password, _ := proof.BasicAuth(); password != p.Password {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect || "https://"+r.Host != beyond {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	out, err := net.Dial("tcp", p.site.server.Listener.Addr().String())
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

// Through configures the server to fetch metadata through the proxy.
func (p *EgressProxy) Through(config *service.Config) { config.Metadata.Proxy = p.URL() }

// NewClientBeyond returns a client whose document only the proxy can reach.
func (w *World) NewClientBeyond() *Client {
	GinkgoHelper()
	client := w.NewClient()
	path := client.path()
	client.ID = beyond + path
	document, err := json.Marshal(params{"client_id": client.ID, "client_name": "Spec Client",
		"redirect_uris": []string{"http://127.0.0.1/callback"}})
	Expect(err).NotTo(HaveOccurred())
	w.Clients.Publish(path, string(document))
	return client
}

var _ = Describe("Fetching client documents through a proxy", Label("CIMD", "C51", "configuration"), func() {
	var proxy *EgressProxy
	BeforeEach(func() { proxy = NewEgressProxy() })
	start := func(adjust ...func(*service.Config)) *World {
		world := NewWorld(append([]func(*service.Config){proxy.Through}, adjust...)...)
		proxy.site = world.Clients
		return world
	}

	It("connects a client that only the proxy can reach", func(ctx SpecContext) {
		Expect(start().NewClientBeyond().Connect(ctx).Scope).To(HavePrefix("mcp"))
		Expect(proxy.Connects.Load()).To(BeEquivalentTo(1))

		world := NewWorld()
		client := world.NewClientBeyond()
		Expect(client.AskFor(ctx, client.Request())).To(BeAPage(http.StatusBadGateway, "invalid_client"))
	})

	It("sends the password to the proxy and reveals it nowhere else", func(ctx SpecContext) {
		proxy.Password = "known-to-few"
		world := start()
		client, seen := world.NewClientBeyond(), make(chan http.Header, 1)
		publish := world.Clients.documents[strings.TrimPrefix(client.ID, beyond)]
		world.Clients.Serve(strings.TrimPrefix(client.ID, beyond), func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Header
			publish(w, r)
		})
		client.Connect(ctx)
		Expect(<-seen).NotTo(HaveKey(ContainSubstring("Authorization")))
		proxy.Password = "changed"
		other := world.NewClientBeyond()
		page := other.AskFor(ctx, other.Request())
		Expect(page).To(BeAPage(http.StatusBadGateway, "invalid_client"))
		Expect(world.Log.String()).To(ContainSubstring("the proxy refuses to connect: 407"))
		Expect(world.Log.String() + page.Text).NotTo(ContainSubstring("known-to-few"))
	})

	It("dials no host itself when the proxy is down", func(ctx SpecContext) {
		world := start()
		client := world.NewClient()
		proxy.server.Close()
		Expect(client.AskFor(ctx, client.Request())).To(BeAPage(http.StatusBadGateway, "invalid_client"))
		Expect(world.Clients.Fetches()).To(BeZero())
	})

	const notAProxy = "not a URL of an HTTP proxy: write http://host:3128"
	DescribeTable("does not start with", Label("F9"), func(ctx SpecContext, address, remedy string) {
		workingFolder()
		for _, command := range [][]string{{"config"}, {"serve"}, {"gateway", "--upstream=http://127.0.0.1:9000/mcp"}} {
			ran := Run(ctx, append(command, "--issuer=https://cms.example.com", "--metadata-proxy="+address)...)
			Expect(ran.Code).To(Equal(1), ran.Out)
			Expect(ran.Err).
				To(And(ContainSubstring("--metadata-proxy is "+remedy), Not(ContainSubstring("known-to"))))
		}
	},
		Entry("a host without a scheme", "proxy.internal:3128", notAProxy),
		Entry("no host", "http://me:known-to-few@:3128", notAProxy),
		Entry("a password that is not escaped", "http://me:known-to/few@proxy.internal:3128",
			`[hidden]: write a URL whose password has %2F for a slash`),
		Entry("a path", "http://me:known-to-few@proxy.internal:3128/proxy.pac", notAProxy),
	)

	It("hides the URL in the output of config, and reads it from a file", func(ctx SpecContext) {
		workingFolder()
		ran := Run(ctx, "config", "--dev", "--metadata-proxy=http://me:known-to-few@proxy.internal:3128")
		Expect(ran.Settings()).To(HaveKeyWithValue("metadata-proxy", "[hidden]"))
		write("proxy", "http://me:known-to-few@proxy.internal:3128\n")
		fromFile := Run(ctx, "config", "--dev", "--metadata-proxy=file:proxy")
		Expect(fromFile.Settings()).To(HaveKeyWithValue("metadata-proxy", "[hidden]"))
		Expect(ran.Out + ran.Err + fromFile.Out + fromFile.Err).NotTo(ContainSubstring("known-to-few"))
	})
})
