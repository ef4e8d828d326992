package features_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// Operated is a world served like "pasteport serve", with an admin listener.
type Operated struct {
	*World
	Admin string
	Stop  func() // starts the shutdown and returns immediately
	Ended chan error

	Shutdown func() // stops the service and waits until it is closed
}

// Operate starts a world with an admin listener; it ends with the spec.
func Operate(adjust ...func(*service.Config)) *Operated {
	GinkgoHelper()
	withAdmin := func(config *service.Config) { config.AdminAddr = "127.0.0.1:0" }
	w := newWorld(append([]func(*service.Config){withAdmin}, adjust...)...)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	w.open(listener)
	ctx, stop := context.WithCancel(context.Background())
	o := &Operated{
		World: w,
		Admin: "http://" + w.service.AdminAddr().String(),
		Stop:  stop,
		Ended: make(chan error, 1),
	}
	served := sync.OnceFunc(func() { o.Ended <- w.service.Serve(ctx, listener) })
	go served()
	o.Shutdown = sync.OnceFunc(func() {
		stop()
		noRedirects.CloseIdleConnections()
		served() // waits
		Expect(w.service.Close()).To(Succeed())
	})
	DeferCleanup(func() { o.Shutdown() })
	return o
}

// AskAdmin sends a GET request to the admin listener; change may alter it.
func (o *Operated) AskAdmin(ctx context.Context, path string, change ...func(*http.Request)) Response {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, o.Admin+path, http.NoBody))
	for _, apply := range change {
		apply(r)
	}
	return Send(r)
}

// outside returns an address of this computer that is not loopback.
func outside() string {
	GinkgoHelper()
	for _, address := range must(net.InterfaceAddrs()) {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	Skip("this computer has loopback only")
	return ""
}

// Spoil overwrites the root page of a SQLite table, as a failing disk may.
func (o *Operated) Spoil(ctx context.Context, table string) {
	GinkgoHelper()
	db := o.database()
	var page, size int64
	Expect(db.QueryRowContext(ctx, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?",
		table).Scan(&page, &size)).To(Succeed())
	Expect(db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")).Error().NotTo(HaveOccurred())
	file := must(os.OpenFile(filepath.Join(o.Dir, "oauth.db"), os.O_RDWR, 0))
	Expect(file.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (page-1)*size)).Error().NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
}

func linesWith(log, text string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

var _ = Describe("Operating a service", Label("operations"), func() {
	It("reports that it is alive and ready, with each check by name", func(ctx SpecContext) {
		service := Operate()
		Expect(service.AskAdmin(ctx, "/healthz")).
			To(And(HaveField("StatusCode", http.StatusOK), HaveField("Text", MatchJSON(`{"status":"ok"}`))))
		ready := service.AskAdmin(ctx, "/readyz")
		Expect(ready.StatusCode).To(Equal(http.StatusOK))
		Expect(ready.Text).
			To(MatchJSON(`{"status":"ok","checks":[{"name":"serving"},{"name":"oauth database"},{"name":"proxies"},` +
				`{"name":"demo site"}]}`))
	})

	It("names what does not respond", func(ctx SpecContext) {
		service := Operate()
		service.LoseSite()
		ready := service.AskAdmin(ctx, "/readyz")
		Expect(ready.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(ready.Text).To(MatchRegexp(`"proxies"},{"name":"demo site","problem":"reading the site: .*no such file`))
		Expect(service.AskAdmin(ctx, "/healthz").StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("is not ready with a damaged table, and logs it", Label("N14"), func(ctx SpecContext, table string) {
		service := Operate()
		stake := NewStake(ctx, service.NewClient())
		Expect(service.AskAdmin(ctx, "/readyz").StatusCode).To(Equal(http.StatusOK))
		service.Spoil(ctx, table)
		Eventually(func() Response { return service.AskAdmin(ctx, "/readyz") }).WithTimeout(patience).Should(And(
			HaveField("StatusCode", http.StatusServiceUnavailable),
			HaveField("Text", MatchRegexp(`"oauth database","problem":"[^"]*malformed`))))
		Expect(linesWith(service.Log.String(), "a readiness check fails")).To(ConsistOf(ContainSubstring("malformed")))
		Expect(stake.Try(ctx)).To(HaveKeyWithValue("refresh", BePutOff()))
	},
		Entry("of grants", "grants", SpecTimeout(time.Minute)),
	)

	It("serves profiles, without the command line", func(ctx SpecContext) {
		service := Operate()
		Expect(service.AskAdmin(ctx, "/debug/pprof/goroutine?debug=1").Text).
			To(ContainSubstring("goroutine profile: total"))
		Expect(service.AskAdmin(ctx, "/debug/pprof/cmdline").StatusCode).To(Equal(http.StatusNotFound))
	})

	DescribeTable("refuses", func(ctx SpecContext, status int, spoil func(*http.Request)) {
		service := Operate()
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/debug/pprof/", "/unknown"} {
			answer := service.AskAdmin(ctx, path, spoil)
			Expect(answer.StatusCode).To(Equal(status), path)
			Expect(answer.Header).NotTo(HaveKey("Access-Control-Allow-Origin"))
		}
	},
		Entry("another host name (DNS rebinding)", http.StatusForbidden, func(r *http.Request) {
			r.Host = "evil.example"
		}),
		Entry("another address", http.StatusForbidden, func(r *http.Request) { r.Host = "192.0.2.1" }),
		Entry("a page of another origin", http.StatusForbidden, with("Origin", "https://evil.example")),
		Entry("a page of another port of this computer", http.StatusForbidden, with("Origin", "http://127.0.0.1:1")),
		Entry("an image or a link of another site", http.StatusForbidden, with("Sec-Fetch-Site", "cross-site")),
		Entry("POST", http.StatusMethodNotAllowed, func(r *http.Request) { r.Method = http.MethodPost }),
	)

	DescribeTable("accepts", func(ctx SpecContext, change func(*http.Request)) {
		Expect(Operate().AskAdmin(ctx, "/readyz", change).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("localhost", func(r *http.Request) { r.Host = "LocalHost:8081" }),
		Entry("another loopback address", func(r *http.Request) { r.Host = "[::1]:8081" }),
		Entry("its own page", func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }),
		Entry("an address that was typed", with("Sec-Fetch-Site", "none")),
		Entry("HEAD", func(r *http.Request) { r.Method = http.MethodHead }),
	)

	It("has no admin listener by default", func() {
		for _, off := range []string{"", "off"} {
			world := NewWorld(func(config *service.Config) { config.AdminAddr = off })
			Expect(world.service.AdminAddr()).To(BeNil())
		}
	})

	It("fails if its admin address is in use, and creates no files", func(ctx SpecContext) {
		taken := Operate().Admin[len("http://"):]
		dir := filepath.Join(GinkgoT().TempDir(), "site")
		ran := Run(ctx, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", taken, "--data", dir)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).
			To(And(ContainSubstring("listening on "+taken), ContainSubstring("choose another with --admin-addr")))
		Expect(dir).NotTo(BeADirectory())
	})

	It("warns of an admin listener that other computers can reach", func(ctx SpecContext) {
		service := Operate(func(config *service.Config) { config.AdminAddr = "0.0.0.0:0" })
		Expect(service.Log.String()).To(ContainSubstring("the admin listener can be reached from other computers"))
		_, port, err := net.SplitHostPort(service.Admin[len("http://"):])
		Expect(err).NotTo(HaveOccurred())
		service.Admin = "http://127.0.0.1:" + port
		Expect(service.AskAdmin(ctx, "/readyz").StatusCode).To(Equal(http.StatusOK))
		Expect(service.AskAdmin(ctx, "/readyz", func(r *http.Request) {
			r.Host = "evil.example"
		}).StatusCode).To(Equal(http.StatusForbidden))
		for _, host := range []string{"192.0.2.1", "0.0.0.0:" + port, "[::]"} {
			Expect(service.AskAdmin(ctx, "/readyz", func(r *http.Request) {
				r.Host = host
			}).StatusCode).To(Equal(http.StatusForbidden), host)
		}
	})

	It("serves other computers readiness and metrics only", func(ctx SpecContext) {
		service := Operate(func(config *service.Config) { config.AdminAddr = "0.0.0.0:0" })
		_, port, err := net.SplitHostPort(service.Admin[len("http://"):])
		Expect(err).NotTo(HaveOccurred())
		for host, private := range map[string]int{outside(): http.StatusForbidden, "127.0.0.1": http.StatusOK} {
			service.Admin = "http://" + net.JoinHostPort(host, port)
			for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
				Expect(service.AskAdmin(ctx, path).StatusCode).To(Equal(http.StatusOK), path)
			}
			for _, path := range []string{"/", "/connections.json", "/debug/pprof/"} {
				Expect(service.AskAdmin(ctx, path).StatusCode).To(Equal(private), path)
			}
		}
	})

	It("forbids caching and framing of its responses", func(ctx SpecContext) {
		service := Operate()
		for path, policy := range map[string]string{"/readyz": "default-src 'none'; frame-ancestors 'none'",
			"/": "style-src 'sha256-"} {
			answer := service.AskAdmin(ctx, path)
			Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
			Expect(answer.Header.Get("Content-Security-Policy")).
				To(And(ContainSubstring(policy), ContainSubstring("frame-ancestors 'none'")))
		}
	})

	It("ends streams cleanly when it stops, and counts open streams", Label("G16"), func(ctx SpecContext) {
		service := Operate()
		for _, revision := range []string{httpSSE, sessions} {
			talk := service.Converse(ctx, revision, service.NewClient().Connect(ctx).Access)
			stream := talk.Listen(ctx)
			DeferCleanup(stream.Body.Close)
		}
		Expect(service.AskAdmin(ctx, "/metrics").Text).
			To(And(ContainSubstring("\npasteport_mcp_streams 2\n"), ContainSubstring("\npasteport_mcp_sessions 2\n"),
				ContainSubstring("\npasteport_store_collisions_total 0\n")))
		bare := (&Conversation{World: service.World, Revision: httpSSE, Access: service.NewClient().Connect(ctx).
			Access}).Request(ctx, http.MethodGet)
		answer := must(noRedirects.Do(bare))
		service.Stop()
		read, err := io.ReadAll(answer.Body)
		Expect(err).NotTo(HaveOccurred(), "the body is complete")
		Expect(string(read)).To(HavePrefix("event: endpoint"))
		Expect(answer.Body.Close()).To(Succeed())
		Eventually(service.Ended).WithTimeout(patience).Should(Receive(BeNil()))
	}, SpecTimeout(time.Minute))

	It("finishes running requests at shutdown, reports that it is not ready, and closes the admin listener last",
		func(ctx SpecContext) {
			service := Operate()
			client := service.NewClient()
			asked, release := make(chan struct{}), make(chan struct{})
			service.Clients.Serve("/slow.json", func(w http.ResponseWriter, r *http.Request) {
				close(asked)
				<-release
				http.NotFound(w, r)
			})
			client.ID = service.Clients.URL("/slow.json")
			answered := make(chan Response, 1)
			go func() {
				defer GinkgoRecover()
				answered <- client.AskFor(ctx, client.Request())
			}()
			Eventually(asked).WithTimeout(patience).Should(BeClosed())
			service.Stop()
			Eventually(func() string { return service.AskAdmin(ctx, "/readyz").Text }).WithTimeout(patience).
				Should(ContainSubstring(`{"name":"serving","problem":"the service is shutting down"}`))
			Expect(service.AskAdmin(ctx, "/healthz").StatusCode).To(Equal(http.StatusOK))
			Consistently(service.Ended, "50ms").ShouldNot(Receive())
			close(release)
			Expect(<-answered).To(BeAPage(http.StatusBadGateway, "invalid_client"))
			Eventually(service.Ended).WithTimeout(patience).Should(Receive(BeNil()))
			_, err := net.Dial("tcp", service.Admin[len("http://"):])
			Expect(err).To(HaveOccurred())
		}, SpecTimeout(time.Minute))
})
