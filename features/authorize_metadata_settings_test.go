package features_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

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
	u := must(url.Parse(p.server.URL))
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

// NewClientBeyond returns a client whose document only the proxy can reach.
func (w *World) NewClientBeyond() *Client {
	GinkgoHelper()
	client := w.NewClient()
	path := client.path()
	client.ID = beyond + path
	document := must(json.Marshal(params{"client_id": client.ID, "client_name": "Spec Client",
		"redirect_uris": []string{"http://127.0.0.1/callback"}}))
	w.Clients.Publish(path, string(document))
	return client
}

var _ = Describe("Fetching client documents through a proxy", Label("CIMD", "C51", "configuration"), func() {
	var proxy *EgressProxy
	BeforeEach(func() { proxy = NewEgressProxy() })
	start := func(adjust ...func(*service.Config)) *World {
		through := func(config *service.Config) { config.Metadata.Proxy = proxy.URL() }
		world := NewWorld(append(adjust, through)...)
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
			Expect(ran.Err).To(And(ContainSubstring("--metadata-proxy is "+remedy), Not(ContainSubstring("known-to"))))
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

// document returns the document of the client, with these redirect URIs.
func (c *Client) document(redirects string) string {
	return `{"client_id":"` + c.ID + `","client_name":"Pinned Client","redirect_uris":["` + redirects + `"]}`
}

var _ = Describe("Pinning documents of clients", Label("CIMD", "C59", "configuration"), func() {
	var folder string
	var world *World
	var client *Client
	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		world = NewWorld(func(config *service.Config) { config.ClientDocuments = folder })
		client = world.NewClient()
		world.Clients.Serve(client.path(), challenged)
	})
	pin := func(name, document string) {
		GinkgoHelper()
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(document), 0o600)).To(Succeed())
	}
	ask := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }

	It("lets an app connect whose document cannot be fetched, without a fetch", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).Text).To(And(ContainSubstring("Pinned Client"), Not(ContainSubstring("could not check"))))
		client.Connect(ctx)
		Expect(world.Clients.Fetches()).To(BeZero())
		Expect(world.Rows(ctx)["client_documents"]).To(BeEmpty())
	})

	It("serves the form with which ChatGPT reconnects, unless that has a document of its own",
		Label("C23"), func(ctx SpecContext) {
			pin("client.json", client.document(client.Redirect))
			client.ID += "?token_endpoint_auth_method=none"
			tokens := client.Connect(ctx)
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			pin("own.json", strings.Replace(client.document(client.Redirect), "Pinned Client", "Its own", 1))
			Expect(ask(ctx).Text).To(ContainSubstring("Its own"))
			client.ID += "&x=1"
			Expect(ask(ctx).StatusCode).To(Equal(http.StatusBadGateway))
			Expect(world.Clients.Fetches()).To(BeEquivalentTo(1))
		})

	It("follows the files while the service runs", func(ctx SpecContext) {
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusBadGateway))
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		pin("client.json", client.document("https://client.example/elsewhere"))
		Expect(ask(ctx)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		pin("client.json", client.document(client.Redirect))
		Expect(os.Remove(filepath.Join(folder, "client.json"))).To(Succeed())
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusBadGateway))
	})

	It("keeps the documents while a file is not valid, and logs the mistake once", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		pin("other.json", `{"client_id":`)
		for range 3 {
			Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(linesWith(world.Log.String(), "pinned client documents cannot be used")).
			To(ConsistOf(ContainSubstring("other.json")))
	})

	It("does not wait for a pipe, and keeps the documents", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		Expect(syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600)).To(Succeed())
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Log.String()).To(ContainSubstring("pipe.json: it is not a regular file: remove it"))
	})

	It("ignores other files", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		pin("README", "notes")
		pin(".client.json.swp", "{")
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("reports every mistake before the start",
		func(ctx SpecContext, said string, files map[string]string) {
			for name, document := range files {
				pin(name, document)
			}
			ran := Run(ctx, "config", "--dev", "--client-documents", folder)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(And(ContainSubstring("--client-documents"), ContainSubstring(said)))
		},
		Entry("no JSON", "one.json: decode the document", map[string]string{"one.json": "{"}),
		Entry("no client_id", "one.json", map[string]string{"one.json": `{"client_name":"A"}`}),
		Entry("a client_id that is not a URL", "malformed_client_id",
			map[string]string{"one.json": `{"client_id":"client"}`}),
		Entry("a document that would be refused", "redirect_uris",
			map[string]string{"one.json": `{"client_id":"https://client.example/c","client_name":"A"}`}),
		Entry("two documents of one client", "the same client_id", map[string]string{
			"one.json": `{"client_id":"https://client.example/c","client_name":"A",` +
				`"redirect_uris":["https://client.example/cb"]}`,
			"two.json": `{"client_id":"https://client.example/c","client_name":"B",` +
				`"redirect_uris":["https://client.example/cb"]}`,
		}),
		Entry("a file that is too large", "more than 5120 bytes",
			map[string]string{"one.json": strings.Repeat(" ", 5121)}),
	)

	It("reports a folder that does not exist", func(ctx SpecContext) {
		ran := Run(ctx, "config", "--dev", "--client-documents", filepath.Join(folder, "missing"))
		Expect(ran).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("--client-documents"))))
	})
})

var _ = Describe("The commands for documents of clients", Label("CIMD", "C59", "cli"), func() {
	var folder string
	var world *World
	var client *Client
	var environment []string
	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		world = NewWorld()
		client = world.NewClient()
		environment = []string{"SSL_CERT_FILE=" + world.Clients.Certificate()}
	})
	run := func(args ...string) Ran {
		GinkgoHelper()
		return BuildBinary().Do(environment, args...)
	}
	known := func(command string) Ran {
		GinkgoHelper()
		return run(append([]string{"clients", command, "--dev", "--client-documents", folder}, world.Kept()...)...)
	}

	It("fetch a document to pin, and list it beside the stored ones", func(ctx SpecContext) {
		fetched := run("clients", "fetch", "--dev", client.ID)
		Expect(fetched).To(And(HaveField("Code", 0), HaveField("Out", ContainSubstring(`"client_id":"`+client.ID+`"`))),
			fetched.Err)
		file := filepath.Join(folder, "client.json")
		Expect(os.WriteFile(file, []byte(fetched.Out), 0o600)).To(Succeed())
		another := world.NewClient()
		another.Connect(ctx)

		Expect(known("list").Out).
			To(And(MatchRegexp("%s +%s ", client.ID, file), MatchRegexp("%s +store ", another.ID)))
	})

	It("say that nothing is known, and how to use them", func() {
		Expect(known("list")).
			To(And(HaveField("Code", 0), HaveField("Out", ContainSubstring("No document is pinned or stored"))))
		Expect(run("clients", "fetch")).
			To(And(HaveField("Code", 2), HaveField("Err", ContainSubstring("name one client_id"))))
		Expect(run("clients", "fetch", "--dev", "http://client.example/c")).
			To(And(HaveField("Code", 1),
				HaveField("Err", ContainSubstring("must be the https URL of a metadata document"))))
		Expect(run("clients", "fetch", "--dev", world.Clients.URL("/missing"))).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("the status of the response is 404"))))
	})
})
