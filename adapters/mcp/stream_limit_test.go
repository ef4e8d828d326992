package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// endless is an Upstream whose streams end with their requests.
type endless struct{}

func (endless) Forward(w http.ResponseWriter, r *http.Request, _ []byte, _ oauth.Caller, _ oauth.HostToken) error {
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
	return nil
}

func (e endless) Deliver(w http.ResponseWriter, r *http.Request, body []byte, caller oauth.Caller,
	host oauth.HostToken) error {
	return e.Forward(w, r, body, caller, host)
}

var _ = Describe("The streams of one person through a gateway", Label("G20"), func() {
	const perPerson = 3
	var s *site
	BeforeEach(func() {
		s = &site{tokens: &tokens{callers: map[string]oauth.Caller{alice: {Grant: "A", Subject: "alice"}}}}
		e := echo.New()
		s.Server = httptest.NewServer(e)
		s.mcp = NewGateway(endless{}, Options{
			Issuer:        issuer,
			Resource:      oauth.NewResource(canonical),
			Authorization: s.tokens,
			AllowedHosts:  []string{s.Listener.Addr().String()},
			Limits:        oauth.Limits{MaxSessions: 100, MaxSessionsPerPerson: perPerson},
		})
		s.mcp.Mount(e)
		DeferCleanup(func() {
			s.mcp.Drain()
			s.CloseClientConnections()
			s.Server.Close()
		})
	})

	DescribeTable("stay limited after many", func(ctx context.Context, body string, status int) {
		for range 2 * perPerson {
			sent := s.send(ctx, http.MethodPost, "/mcp", body, as(alice)...)
			Expect(sent.StatusCode).To(Equal(status), sent.body)
		}
		for range 3 * perPerson {
			s.follow(ctx, http.MethodGet, "/mcp", "", as(alice)...)
		}
		Eventually(func() int {
			streams, _ := s.mcp.Open()
			return streams
		}).Should(Equal(perPerson))
	},
		Entry("requests", call(1, "read"), http.StatusAccepted),
		Entry("batches with a subscription and answers that are refused",
			"["+strings.Join([]string{
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`,
				`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"Method":"x"}`,
			}, ",")+"]", http.StatusBadRequest),
	)
})
