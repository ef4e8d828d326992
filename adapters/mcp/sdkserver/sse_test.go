package sdkserver

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// whenLogged calls do when the SDK logs the message.
type whenLogged struct {
	slog.Handler
	message string
	do      func()
}

func (whenLogged) Enabled(context.Context, slog.Level) bool { return true }

func (w whenLogged) Handle(_ context.Context, r slog.Record) error {
	if r.Message == w.message {
		w.do()
	}
	return nil
}

// counted counts the bytes that are written.
type counted struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// Unwrap is called by http.ResponseController.
func (c counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

var _ = Describe("HTTP+SSE", Label("2024-11-05"), func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	open := func(ctx context.Context, token string) (stream follow, endpoint string) {
		GinkgoHelper()
		stream = s.follow(ctx, http.MethodGet, "/mcp", "", append(as(token), "Accept", "text/event-stream")...)
		Eventually(stream.lines).Should(Receive(Equal("event: endpoint")))
		return stream, stream.data()
	}

	It("sends the URL for messages only when the SDK is ready", func(ctx SpecContext) {
		loggedAt, written := make(chan int64, 1), new(atomic.Int64)
		handler := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(counted{w, written}, r)
		})
		s.mcp.mcp = sdk.NewServer(&sdk.Implementation{Name: "cms", Version: "1"},
			&sdk.ServerOptions{Logger: slog.New(whenLogged{
				message: "server connecting", do: func() { loggedAt <- written.Load() },
			})})
		_, endpoint := open(ctx, alice)
		Expect(loggedAt).To(Receive(BeZero()))
		Expect(endpoint).NotTo(BeEmpty())
	})

	DescribeTable("refuses",
		func(ctx SpecContext, path, body, contentType string, status int) {
			_, endpoint := open(ctx, alice)
			r := s.request(ctx, http.MethodPost, strings.ReplaceAll(path, "ENDPOINT", endpoint), body, as(alice)...)
			r.Header.Set("Content-Type", contentType)
			Expect(s.do(r).StatusCode).To(Equal(status))
		},
		Entry("another content type", "ENDPOINT", initialize, "text/plain", 415),
		Entry("a malformed message", "ENDPOINT", "{", "application/json", 400),
	)

	It("removes a session whose client goes before initialize", func(ctx SpecContext) {
		initializing, proceed, initialized := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s.mcp.mcp.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
				if method != "initialize" {
					return next(ctx, method, request)
				}
				defer close(initialized)
				close(initializing)
				<-proceed
				return next(ctx, method, request)
			}
		})
		streamCtx, hangUp := context.WithCancel(ctx)
		_, endpoint := open(streamCtx, alice)
		s.send(ctx, http.MethodPost, endpoint, initialize, as(alice)...)
		Eventually(initializing).Should(BeClosed())
		hangUp()
		Eventually(func() int { streams, _ := s.mcp.Open(); return streams }).Should(BeZero())
		close(proceed)
		Eventually(initialized).Should(BeClosed())
		Eventually(s.mcp.Idle).Should(BeTrue())
	})

	It("cancels running calls and removes the session when the client goes", func(ctx SpecContext) {
		streamCtx, hangUp := context.WithCancel(ctx)
		_, endpoint := open(streamCtx, alice)
		s.send(ctx, http.MethodPost, endpoint, initialize, as(alice)...)
		s.send(ctx, http.MethodPost, endpoint, call(2, "hold"), as(alice)...)
		Eventually(s.holds).Should(Receive())
		hangUp()
		Eventually(s.ended).Should(Receive())
		Eventually(s.mcp.Idle).Should(BeTrue())
		Eventually(func() int {
			open := 0
			s.mcp.legacy.Range(func(any, any) bool { open++; return true })
			return open
		}).Should(BeZero())
		Expect(s.send(ctx, http.MethodPost, endpoint, initialize, as(alice)...).StatusCode).
			To(Equal(http.StatusNotFound))
	})
})
