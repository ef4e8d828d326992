package httpserver

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/features/suite"
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
	It("makes a new connection wait until another one is closed", func(ctx SpecContext) {
		s := serve(1, nil)
		taken, next := dial(ctx, s.addr), dial(ctx, s.addr)
		Expect(get(taken)).To(Equal(http.StatusOK))
		answered := make(chan int, 1)
		go func() {
			defer GinkgoRecover()
			answered <- get(next)
		}()
		Consistently(answered, "50ms").ShouldNot(Receive())
		say(taken, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		Eventually(answered).WithTimeout(soon).Should(Receive(Equal(http.StatusOK)))
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

	DescribeTable("leaves half of the files and of the memory to everything else", func(has Capacity, connections int) {
		Expect(has.Connections()).To(Equal(connections))
	},
		Entry("files", Capacity{Files: 1024, Memory: unlimited}, 512),
		Entry("memory", Capacity{Files: unlimited, Memory: 512 << 20}, 512),
		Entry("little", Capacity{Files: 1 << 20, Memory: 200 << 20}, 200),
		Entry("hardly any", Capacity{Files: 10, Memory: 1 << 20}, minConnections),
	)
})

func TestHTTPServer(t *testing.T) { suite.Run(t, "HTTP server") }
