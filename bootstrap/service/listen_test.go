package service

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

const soon = 10 * time.Second

// served is a demo site behind listeners whose bounds a spec has set.
type served struct {
	*Service
	addr string
	log  *gbytes.Buffer
}

func serveWithin(limits bounds, prepare ...func(*Service)) *served {
	GinkgoHelper()
	s := &served{log: gbytes.NewBuffer()}
	config := defaultConfig()
	config.DataDir, config.Development, config.AdminAddr = GinkgoT().TempDir(), true, "127.0.0.1:0"
	config.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	listener, err := listen("127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	s.addr = listener.Addr().String()
	config.Issuer = config.ownIssuer(listener.Addr())
	ctx, stop := context.WithCancel(context.Background())
	s.Service, err = Open(ctx, *config)
	Expect(err).NotTo(HaveOccurred())
	s.bounds, s.operations.bounds = limits, limits
	for _, change := range prepare {
		change(s.Service)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).WithTimeout(drainLimit + soon).Should(Receive(BeNil()))
		Expect(s.Close()).To(Succeed())
	})
	return s
}

// dial opens a connection on which nothing waits for longer than a spec would.
func dial(ctx context.Context, addr string) net.Conn {
	GinkgoHelper()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	Expect(conn.SetDeadline(time.Now().Add(soon))).To(Succeed())
	return conn
}

func say(conn net.Conn, request string) {
	GinkgoHelper()
	_, err := io.WriteString(conn, request)
	Expect(err).NotTo(HaveOccurred())
}

// get asks once and leaves the connection open.
func get(conn net.Conn) int {
	GinkgoHelper()
	say(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(io.Discard, answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode
}

var _ = Describe("Deadlines of the service's own listeners", Label("operations"), func() {
	short := func() bounds {
		b := boundsFor(100)
		b.read, b.write = 200*time.Millisecond, 500*time.Millisecond
		return b
	}

	DescribeTable("close a connection whose body does not come", func(ctx SpecContext, path string) {
		s := serveWithin(short())
		addr := s.addr
		if strings.HasPrefix(path, "admin ") {
			addr, path = s.AdminAddr().String(), strings.TrimPrefix(path, "admin ")
		}
		conn := dial(ctx, addr)
		say(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
		_, err := io.Copy(io.Discard, conn)
		Expect(err).NotTo(HaveOccurred(), "the server has closed it")
	},
		Entry("to the root", "/"), Entry("to nothing", "/nothing"), Entry("to a page of the authorization server that is not there", "/oauth/nothing"),
		Entry("to its metadata", "/.well-known/oauth-authorization-server"), Entry("to that of the resource", "/.well-known/oauth-protected-resource/mcp"),
		Entry("to readiness", "admin /readyz"), Entry("to nothing of the admin listener", "admin /nothing"),
	)

	It("cut an answer that nobody reads", func(ctx SpecContext) {
		wrote := make(chan error, 1)
		s := serveWithin(short(), func(s *Service) {
			s.Echo.GET("/large", func(c echo.Context) error {
				part, err := make([]byte, 1<<20), error(nil)
				for range 256 {
					if _, err = c.Response().Write(part); err != nil {
						break
					}
				}
				wrote <- err
				return err
			})
		})
		say(dial(ctx, s.addr), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
		Eventually(wrote).WithTimeout(soon).Should(Receive(MatchError(ContainSubstring("timeout"))))
	})
})

var _ = Describe("Limiting connections", Label("operations"), func() {
	few := func(connections int) bounds { return boundsFor(connections) }

	It("lets a new connection take the place of the one that has been idle longest", func(ctx SpecContext) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		log := gbytes.NewBuffer()
		limited := limitListener(listener, 2, slog.New(slog.NewTextHandler(log, nil)))
		server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ConnState: limited.follow, ReadHeaderTimeout: soon}
		go func() { _ = server.Serve(limited) }()
		DeferCleanup(server.Close)
		idle := func() int {
			limited.mu.Lock()
			defer limited.mu.Unlock()
			return limited.idle.Len()
		}
		var conns [3]net.Conn
		for i := range conns {
			conns[i] = dial(ctx, listener.Addr().String())
			Expect(get(conns[i])).To(Equal(http.StatusOK))
			Eventually(idle).WithTimeout(soon).Should(Equal(min(i+1, 2)))
		}
		_, err = conns[0].Read(make([]byte, 1))
		Expect(err).To(MatchError(io.EOF))
		Expect(get(conns[1])).To(Equal(http.StatusOK))
		Expect(log.Contents()).To(BeEmpty())
	})

	It("lets a new connection wait while none is idle, says so, and takes the next one that is", func(ctx SpecContext) {
		release := make(chan struct{})
		s := serveWithin(few(1), func(s *Service) {
			s.Echo.GET("/slow", func(c echo.Context) error {
				<-release
				return c.NoContent(http.StatusNoContent)
			})
		})
		busy, next := dial(ctx, s.addr), dial(ctx, s.addr)
		say(busy, "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answered := make(chan int, 1)
		go func() {
			defer GinkgoRecover()
			answered <- get(next)
		}()
		Eventually(s.log).WithTimeout(soon).Should(gbytes.Say("new ones wait.*connections=1"))
		Consistently(answered, "50ms").ShouldNot(Receive())
		close(release)
		Eventually(answered).WithTimeout(soon).Should(Receive(Equal(http.StatusOK)))
	})

	It("closes connections that send nothing for a while when every place is taken", func(ctx SpecContext) {
		s := serveWithin(few(2))
		silent := []net.Conn{dial(ctx, s.addr), dial(ctx, s.addr)}
		Expect(get(dial(ctx, s.addr))).To(Equal(http.StatusOK))
		_, err := silent[0].Read(make([]byte, 1))
		Expect(err).To(MatchError(io.EOF))
		Expect(get(silent[1])).To(Equal(http.StatusOK), "one place was enough")
	})

	It("stops while a connection waits", func(ctx SpecContext) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		limited := limitListener(listener, 1, slog.New(slog.DiscardHandler))
		dial(ctx, listener.Addr().String())
		taken, err := limited.Accept()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		dial(ctx, listener.Addr().String())
		ended := make(chan error, 1)
		go func() {
			_, err := limited.Accept()
			ended <- err
		}()
		Consistently(ended, "50ms").ShouldNot(Receive())
		Expect(limited.Close()).To(Succeed())
		Eventually(ended).WithTimeout(soon).Should(Receive(MatchError(net.ErrClosed)))
	})

	It("answers no more requests of HTTP/2 at once than there may be connections", func(ctx SpecContext) {
		release, came := make(chan struct{}), make(chan struct{}, 1)
		server := httptest.NewUnstartedServer(atOnce(1, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			came <- struct{}{}
			<-release
		})))
		server.EnableHTTP2 = true
		server.StartTLS()
		DeferCleanup(server.Close)
		ask := func() *http.Response {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			answer, err := server.Client().Do(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Body.Close()).To(Succeed())
			return answer
		}
		first := make(chan *http.Response, 1)
		go func() {
			defer GinkgoRecover()
			first <- ask()
		}()
		Eventually(came).WithTimeout(soon).Should(Receive())
		refused := ask()
		Expect(refused.ProtoMajor).To(Equal(2))
		Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(refused.Header).To(HaveKeyWithValue("Retry-After", []string{"5"}))
		Expect(refused.ContentLength).To(BeZero())
		close(release)
		Eventually(first).WithTimeout(soon).Should(Receive(HaveField("StatusCode", http.StatusOK)))
	})

	It("hangs up on a connection of TLS without waiting for its client", func() {
		ours, theirs := net.Pipe()
		DeferCleanup(theirs.Close)
		hangUp(tls.Server(ours, &tls.Config{MinVersion: tls.VersionTLS12}))
		_, err := theirs.Read(make([]byte, 1))
		Expect(err).To(MatchError(io.EOF))
	})

	DescribeTable("leaves half of the files and of the memory for everything else", func(has capacity, connections int) {
		Expect(has.connections()).To(Equal(connections))
	},
		Entry("files", capacity{files: 1024, memory: unlimited}, 512), Entry("memory", capacity{files: unlimited, memory: 512 << 20}, 512),
		Entry("little", capacity{files: 1 << 20, memory: 200 << 20}, 200), Entry("next to nothing", capacity{files: 10, memory: 1 << 20}, leastConnections),
	)

	It("goes by this process, or by the setting, and says so at the start", func() {
		s := serveWithin(few(10))
		Expect(s.log).To(gbytes.Say(fmt.Sprintf(`limiting the connections .* connections=%d memory=\d+ files=\d+`, ownCapacity().connections())))
		config := Config{MaxConnections: 7}
		config.Logger = slog.New(slog.DiscardHandler)
		Expect(config.bounds().connections).To(Equal(7))
	})
})
