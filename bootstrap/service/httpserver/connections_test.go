package httpserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

const soon = 10 * time.Second

// served is a running Server.
type served struct {
	addr string
	log  *gbytes.Buffer
}

// serve runs a server with that many connections until the spec ends. Its root responds
// immediately, /slow when release is closed.
func serve(connections int, release <-chan struct{}) *served {
	GinkgoHelper()
	s := &served{log: gbytes.NewBuffer()}
	listener, err := Listen("--addr", "127.0.0.1:0", "127.0.0.1:8080")
	Expect(err).NotTo(HaveOccurred())
	s.addr = listener.Addr().String()
	handler := http.NewServeMux()
	handler.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
	handler.HandleFunc("GET /slow", func(http.ResponseWriter, *http.Request) { <-release })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	server := New(handler, BoundsFor(connections), slog.New(slog.NewTextHandler(s.log, nil)))
	go func() { ended <- server.ServeAndDrain(ctx, listener) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).WithTimeout(drainLimit + soon).Should(Receive(BeNil()))
	})
	return s
}

// dial opens a connection with a deadline.
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

// get sends one request and leaves the connection open.
func get(conn net.Conn) int {
	GinkgoHelper()
	say(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(io.Discard, answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode
}

var _ = Describe("Limiting connections", Label("operations"), func() {
	It("closes the longest idle connection for a new one", func(ctx SpecContext) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		log := gbytes.NewBuffer()
		limited := limitListener(listener, 2, slog.New(slog.NewTextHandler(log, nil)))
		server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			ConnState: limited.trackState, ReadHeaderTimeout: soon}
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

	It("makes a new connection wait while none is idle, logs it, and then replaces the next idle one",
		func(ctx SpecContext) {
			release := make(chan struct{})
			s := serve(1, release)
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

	It("closes silent connections at the limit", func(ctx SpecContext) {
		s := serve(2, nil)
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

	It("limits concurrent HTTP/2 requests to the number of connections", func(ctx SpecContext) {
		release, came := make(chan struct{}), make(chan struct{}, 1)
		server := httptest.NewUnstartedServer(
			limitRequests(1, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
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

	It("closes a TLS connection without waiting for its client", func() {
		ours, theirs := net.Pipe()
		DeferCleanup(theirs.Close)
		hangUp(tls.Server(ours, &tls.Config{MinVersion: tls.VersionTLS12}))
		_, err := theirs.Read(make([]byte, 1))
		Expect(err).To(MatchError(io.EOF))
	})

	DescribeTable("leaves half of the files and of the memory to everything else", func(has Capacity, connections int) {
		Expect(has.Connections()).To(Equal(connections))
	},
		Entry("files", Capacity{Files: 1024, Memory: unlimited}, 512),
		Entry("memory", Capacity{Files: unlimited, Memory: 512 << 20}, 512),
		Entry("little", Capacity{Files: 1 << 20, Memory: 200 << 20}, 200),
		Entry("hardly any", Capacity{Files: 10, Memory: 1 << 20}, minConnections),
	)
})
